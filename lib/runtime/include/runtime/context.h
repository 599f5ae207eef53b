// Context: devices, the memory domain over their spaces, and the callbacks of the application.
// Immutable after creation, except for the list of callbacks. Any thread.
#pragma once

#include <base/mutex.h>
#include <memory/domain.h>
#include <memory/in_place_heap.h>
#include <runtime/device.h>
#include <runtime/scattered_references.h>

#include <span>
#include <string_view>
#include <vector>

namespace polder::runtime {

class AddressMap;
class DeviceQueue;

class Context final : public ScatteredObject<Context> {
public:
    static constexpr Kind kind = Kind::context;
    static constexpr Status invalid = Status::invalid_context;

    using Notify = void(CL_CALLBACK*)(const char* text, const void* info, size_t info_size, void* user);
    using Destructor = void(CL_CALLBACK*)(cl_context context, void* user);

    // `properties` as the application passed them, with the terminating zero, or empty. `devices` are distinct, and at least one.
    static Ref<Context> create(std::vector<Ref<Device>> devices, std::vector<cl_context_properties> properties,
                               Notify notify, void* user);
    ~Context() override;

    [[nodiscard]] std::span<const Ref<Device>> devices() const { return devices_; }
    [[nodiscard]] bool has(const Device& device) const;
    [[nodiscard]] const std::vector<cl_context_properties>& properties() const { return properties_; }
    [[nodiscard]] memory::Domain& domain() const { return *domain_; }
    // The memory whose address the application knows.
    [[nodiscard]] AddressMap& addresses() const { return *addresses_; }
    [[nodiscard]] bool has_svm() const;
    // The memories of devices that use the memory of the heap in place; the heap is null when there are none.
    [[nodiscard]] SpaceSet in_place_spaces() const { return in_place_spaces_; }
    [[nodiscard]] const std::shared_ptr<memory::InPlaceHeap>& in_place_heap() const { return in_place_heap_; }

    // The largest allocation that any device of the context accepts.
    [[nodiscard]] uint64_t max_allocation_bytes() const { return max_allocation_bytes_; }
    // Whether all devices have fine-grained SVM: then the host may use the bytes of an allocation at any time.
    [[nodiscard]] bool has_fine_grained_svm() const;
    // The largest allocation that all devices of the context accept.
    [[nodiscard]] uint64_t max_svm_allocation_bytes() const;
    // The smallest base address alignment of the devices, in bytes. The origin of a sub-buffer must be a multiple of it.
    [[nodiscard]] uint64_t min_base_alignment() const;

    // Reports a mistake of the application to it (pfn_notify). POCL_DEBUG=api reports the failing call.
    void notify(std::string_view text) const;
    // Reports to the application (pfn_notify) and always on stderr. For out-of-memory errors.
    void notify_user(std::string_view text) const;
    // Reports a failed result with notify_user, then returns it.
    template <class T>
    [[nodiscard]] Result<T>&& reported(Result<T>&& result) const {
        if (!result) [[unlikely]]
            notify_user(result.error().detail());
        return std::move(result);
    }
    void add_destructor(Destructor function, void* user);

    // The default queue on a device, for get_default_queue() in kernels; null when there is none. It is the default as long as it has API
    // references, of which `release_queue` releases one. release_queue returns false when there is none to release.
    [[nodiscard]] DeviceQueue* default_queue(const Device& device) const POLDER_EXCLUDES(mutex_);
    // The number of that queue (device_enqueue_abi.h); 0 when there is none.
    [[nodiscard]] uint64_t default_queue_number(const Device& device) const POLDER_EXCLUDES(mutex_);
    // The default queue with one more API reference; null when there is none.
    [[nodiscard]] DeviceQueue* retain_default_queue(const Device& device) POLDER_EXCLUDES(mutex_);
    void set_default_queue(DeviceQueue& queue) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] bool release_queue(DeviceQueue& queue) POLDER_EXCLUDES(mutex_);

private:
    Context(std::vector<Ref<Device>> devices, std::vector<cl_context_properties> properties, Notify notify, void* user);

    struct DestructorCallback {
        Destructor function;
        void* user;
    };

    const std::vector<Ref<Device>> devices_;
    const uint64_t max_allocation_bytes_;
    std::vector<cl_context_properties> properties_;
    Notify notify_;
    void* notify_user_;
    std::unique_ptr<memory::Domain> domain_;
    const SpaceSet in_place_spaces_;
    const std::shared_ptr<memory::InPlaceHeap> in_place_heap_;
    std::unique_ptr<AddressMap> addresses_;
    [[nodiscard]] DeviceQueue* find_default_queue(const Device& device) const POLDER_REQUIRES(mutex_);

    mutable Mutex mutex_;
    std::vector<DestructorCallback> destructors_ POLDER_GUARDED_BY(mutex_);
    std::vector<DeviceQueue*> default_queues_ POLDER_GUARDED_BY(mutex_);  // at most one for each device
};

// CL_DEVICE_MAX_MEM_ALLOC_SIZE of one device, in bytes.
[[nodiscard]] uint64_t max_allocation_bytes(const Device& device);
// CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE of one device, in bytes.
[[nodiscard]] uint64_t max_constant_bytes(const Device& device);

}  // namespace polder::runtime
