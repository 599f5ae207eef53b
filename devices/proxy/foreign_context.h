// ForeignContext: one device of another OpenCL implementation and a context of its own for it.
//
// Owned by the ProxyDevice. Once the device is lost (its implementation says so, or the process forked) it stays so: the
// implementation is then called to release objects only, and in the child of a fork not at all. Any thread.
#pragma once

#include <base/mutex.h>

#include <atomic>
#include <map>
#include <memory>
#include <polder/driver.h>
#include <proxy/icd.h>
#include <string>

namespace polder::proxy {

class ForeignContext {
public:
    [[nodiscard]] static Result<std::unique_ptr<ForeignContext>> open(const ForeignDevice& device);
    ForeignContext(const ForeignContext&) = delete;
    ForeignContext& operator=(const ForeignContext&) = delete;
    ~ForeignContext();

    const cl_icd_dispatch& cl;
    const cl_platform_id platform;
    const cl_device_id device;
    const cl_context handle;
    const std::string name;
    const cl_version version;  // of the device
    // Of 2D images that show a buffer's bytes, in elements; 0: there are none.
    struct ImageAlignments {
        cl_uint pitch = 0;
        cl_uint base = 0;
    };
    const ImageAlignments image_alignments;

    // An in-order queue.
    [[nodiscard]] Result<cl_command_queue> create_queue(cl_command_queue_properties properties) const;

    // The sampler with the bits that OpenCL C gives it (image_abi.h). It lives as long as the context. Returns an OpenCL code.
    [[nodiscard]] cl_int sampler(uint64_t bits, cl_sampler& sampler);

    // Converts the code of a failed call to an Error: the three codes for memory and resources stay, all others become
    // out_of_resources. `what` names the call.
    [[nodiscard]] Error error(cl_int code, const char* what) const;

    [[nodiscard]] bool is_lost() const { return is_lost_.load(std::memory_order_relaxed); }
    // Reports the first loss.
    void lose(const char* what, cl_int code);
    void lose_in_child() {
        is_child_.store(true, std::memory_order_relaxed);
        is_lost_.store(true, std::memory_order_relaxed);
    }
    [[nodiscard]] bool may_release() const { return !is_child_.load(std::memory_order_relaxed); }

    // Converts a time of the implementation's device clock to the host's clock. The offset is estimated from the observation that an
    // operation which ended at `end` (device clock) had ended by `now_ns`. Never later than `now_ns`.
    [[nodiscard]] uint64_t to_host_ns(uint64_t device_ns, uint64_t end, uint64_t now_ns);

private:
    ForeignContext(const ForeignDevice& of, cl_context context, std::string device_name, cl_version device_version);

    Mutex mutex_;
    std::map<uint64_t, cl_sampler> samplers_ POLDER_GUARDED_BY(mutex_);
    std::atomic<bool> is_lost_{false};
    std::atomic<bool> is_child_{false};
    std::atomic<int64_t> clock_offset_ns_{INT64_MAX};  // ours minus theirs, the smallest seen
};

// The result of a device query; `otherwise` when the implementation does not support the query.
template <class Value>
[[nodiscard]] Value ask(const cl_icd_dispatch& cl, cl_device_id device, cl_device_info what, Value otherwise = {}) {
    Value value{};
    return cl.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : otherwise;
}
[[nodiscard]] std::string ask_text(const cl_icd_dispatch& cl, cl_device_id device, cl_device_info what);
[[nodiscard]] std::vector<cl_name_version> ask_versions(const cl_icd_dispatch& cl, cl_device_id device,
                                                        cl_device_info what);

}  // namespace polder::proxy
