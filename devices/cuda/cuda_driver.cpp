#include <base/log.h>

#include <cuda/cuda_device.h>
#include <cuda/cuda_driver.h>
#include <mutex>

namespace polder::cuda {
namespace {

class CudaDriver final : public driver::Driver {
    [[nodiscard]] std::string_view name() const override { return "cuda"; }

    [[nodiscard]] uint32_t count() const override {
        int devices = 0;
        if (const CudaApi* const api = load(); !api || api->device_count(&devices) != code_success)
            return 0;
        return static_cast<uint32_t>(devices);
    }

    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t index, SpaceId space,
                                                               std::string_view parameters) override {
        const uint32_t there = count();
        if (!api_)
            return fail(Status::device_not_found, why_not_);
        if (index >= there)
            return fail(Status::device_not_found, "there are " + std::to_string(there) + " CUDA devices");
        return CudaDevice::open(*api_, static_cast<int>(index), space, shared_, parse_parameters(parameters, index));
    }

    // Opens the library, once, when the devices are counted or opened.
    const CudaApi* load() const {
        std::call_once(loaded_, [this] {
            Result<std::unique_ptr<const CudaApi>> api = CudaApi::load("libcuda.so.1");
            if (api) {
                api_ = std::move(*api);
                return;
            }
            why_not_ = api.error().detail();
            POLDER_LOG(driver, "no CUDA device: %s", why_not_.c_str());
        });
        return api_.get();
    }

    mutable std::once_flag loaded_;
    mutable std::unique_ptr<const CudaApi> api_;
    mutable std::string why_not_;
    const std::shared_ptr<SharedByGpus> shared_ = std::make_shared<SharedByGpus>();
};

} // namespace

std::unique_ptr<driver::Driver> make_driver() { return std::make_unique<CudaDriver>(); }

} // namespace polder::cuda
