// The interfaces that PyTorch requires of a backend: the device guard with streams and events, and the hooks.
#include "generator.h"
#include "memory.h"
#include "ops/types.h"
#include "timing.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace torch_opencl {
namespace {

c10::Device device_at(int index) {
    return c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index));
}

void check_type(c10::Device device) {
    TORCH_CHECK(device.is_privateuseone(), "opencl: expected a device of this backend, not ", device);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
public:
    c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
    c10::Device exchangeDevice(c10::Device device) const override {
        check_type(device);
        // -1 is the current device. An index of more than 127 has become negative.
        if (device.index() < -1)
            set_device(device.index());
        return device_at(exchange_device(device.index()));
    }
    c10::Device getDevice() const override { return device_at(current_device()); }
    void setDevice(c10::Device device) const override {
        check_type(device);
        set_device(device.index());
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        if (device.index() >= 0 && device.index() < deviceCount())
            set_device(device.index());
    }
    c10::DeviceIndex deviceCount() const noexcept override {
        return static_cast<c10::DeviceIndex>(Platform::get().devices().size());
    }

    c10::Stream getStream(c10::Device device) const override { return current_stream(index_of(device)); }
    c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(index_of(device)); }
    c10::Stream getNewStream(c10::Device device, int) const override { return stream_from_pool(index_of(device)); }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
        return stream_from_pool(index_of(device));
    }
    c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
    bool queryStream(const c10::Stream& stream) const override { return is_idle(stream); }
    void synchronizeStream(const c10::Stream& stream) const override { synchronize_stream(stream); }
    void synchronizeDevice(c10::DeviceIndex device) const override {
        synchronize_device(device == -1 ? current_device() : device);
    }
    void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
        if (data.get())
            use_on_stream(data.get(), queue_of(stream));
    }

    void record(void** event, const c10::Stream& stream, c10::DeviceIndex device, c10::EventFlag) const override {
        TORCH_CHECK(device == -1 || device == stream.device_index(), "opencl: an event of device ", device,
                    " cannot be recorded on a stream of device ", stream.device_index());
        auto* const recorded = new Event(torch_opencl::record(queue_of(stream)));
        delete static_cast<Event*>(*event);
        *event = recorded;
    }
    void block(void* event, const c10::Stream& stream) const override {
        if (event)
            torch_opencl::block(queue_of(stream), *static_cast<Event*>(event));
    }
    bool queryEvent(void* event) const override { return !event || static_cast<Event*>(event)->is_complete(); }
    void synchronizeEvent(void* event) const override {
        if (!event)
            return;
        const cl_event waited = static_cast<Event*>(event)->get();
        check(clWaitForEvents(1, &waited), "clWaitForEvents");
    }
    void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
    // The element types that have kernels.
    c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
        const bool has_double = Platform::get().device(index_of(device)).has_double;
        c10::DeviceCapability capability;
        capability.capability_data.capability_bits = 0;
        for (size_t i = 0; i < c10::NUMBER_OF_DEVICE_CAPABILITIES; ++i) {
            const auto type = static_cast<c10::ScalarType>(i);
            if (is_supported(type, has_double) || is_supported_complex(type, has_double))
                capability.capability_data.capability_bits |= uint64_t{1} << i;
        }
        return capability;
    }
    double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
        TORCH_CHECK(first && second, "opencl: both events must be recorded before their elapsed time is known");
        return milliseconds_between(*static_cast<Event*>(first), *static_cast<Event*>(second));
    }

private:
    // Throws where there is no such device.
    static int index_of(c10::Device device) {
        return Platform::get().device(device.has_index() ? device.index() : current_device()).index;
    }
};

class Hooks final : public at::PrivateUse1HooksInterface {
public:
    void init() const override { static_cast<void>(Platform::get()); }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return !Platform::get().devices().empty(); }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return Platform::is_initialized(); }
    c10::DeviceIndex deviceCount() const override {
        return static_cast<c10::DeviceIndex>(Platform::get().devices().size());
    }
    void setCurrentDevice(c10::DeviceIndex device) const override { set_device(device); }
    c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device()); }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        return static_cast<c10::DeviceIndex>(exchange_device(device));
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
    at::Allocator* getPinnedMemoryAllocator() const override { return at::getHostAllocator(at::kPrivateUse1); }
    bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
    c10::Device getDeviceFromPtr(void* address) const override {
        const int device = device_of_address(address);
        TORCH_CHECK(device >= 0, "opencl: the address ", address, " is in no allocation");
        return device_at(device);
    }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
        return default_generator(device);
    }
    at::Generator getNewGenerator(c10::DeviceIndex device) const override {
        const int index = device == -1 ? current_device() : device;
        static_cast<void>(Platform::get().device(index));  // throws when there is none
        return at::make_generator<Generator>(static_cast<c10::DeviceIndex>(index));
    }
    void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
        c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
        TORCH_CHECK(impl->resizable(), "opencl: the storage cannot be resized");
        const int index = storage.device().index();
        const c10::DeviceGuard guard(storage.device());
        c10::DataPtr grown = impl->allocator()->allocate(bytes);
        const size_t kept = std::min(bytes, impl->nbytes());
        if (kept > 0)
            copy_on_device(index, grown.get(), impl->data(), kept);
        impl->set_data_ptr_noswap(std::move(grown));
        impl->set_nbytes(bytes);
    }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

const struct RegisterHooks {
    RegisterHooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }
} register_hooks;

}  // namespace
}  // namespace torch_opencl
