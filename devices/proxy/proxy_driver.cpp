#include <base/log.h>

#include <cstdlib>
#include <mutex>
#include <proxy/icd.h>
#include <proxy/parameters.h>
#include <proxy/proxy_device.h>
#include <proxy/proxy_driver.h>
#include <proxy/vendors.h>

namespace polder::proxy {
namespace {

Result<ForeignDevice> named_device(const Parameters& parameters) {
    POLDER_ASSIGN(icd, Icd::load(parameters.icd));
    const auto& platforms = icd->platforms();
    if (parameters.platform >= platforms.size())
        return fail(Status::device_not_found,
                    parameters.icd + " has " + std::to_string(platforms.size()) + " platforms");
    const std::vector<ForeignDevice>& devices = platforms[parameters.platform];
    if (parameters.device >= devices.size())
        return fail(Status::device_not_found, "platform " + std::to_string(parameters.platform) + " of " +
                                                  parameters.icd + " has " + std::to_string(devices.size()) +
                                                  " devices");
    return devices[parameters.device];
}

class ProxyDriver final : public driver::Driver {
    [[nodiscard]] std::string_view name() const override { return "proxy"; }

    // 0, so that proxy devices are opened only when POCL_DEVICES names them: applications find other implementations without Polder.
    [[nodiscard]] uint32_t count() const override { return 0; }

    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t index, SpaceId space,
                                                               std::string_view text) override {
        const Parameters parameters = parse_parameters(text, index);
        if (!parameters.icd.empty()) {
            POLDER_ASSIGN(device, named_device(parameters));
            return ProxyDevice::open(device, parameters, space);
        }
        const std::vector<ForeignDevice>& devices = listed_devices();
        if (index >= devices.size())
            return fail(Status::device_not_found, "the other ICDs that the loader would list have " +
                                                      std::to_string(devices.size()) + " devices" + why_not_);
        return ProxyDevice::open(devices[index], parameters, space);
    }

    // All devices of the other ICDs that the loader would list.
    const std::vector<ForeignDevice>& listed_devices() {
        std::call_once(listed_, [this] {
            for (const std::string& library : listed_icds([](const char* name) { return std::getenv(name); })) {
                const Result<const Icd*> icd = Icd::load(library);
                if (!icd) {
                    why_not_.append("; ").append(icd.error().detail());
                    POLDER_LOG(driver, "proxy: %s", std::string(icd.error().detail()).c_str());
                    continue;
                }
                for (const std::vector<ForeignDevice>& platform : (*icd)->platforms())
                    devices_.insert(devices_.end(), platform.begin(), platform.end());
            }
        });
        return devices_;
    }

    std::once_flag listed_;
    std::vector<ForeignDevice> devices_;
    std::string why_not_;
};

}  // namespace

std::unique_ptr<driver::Driver> make_driver() { return std::make_unique<ProxyDriver>(); }

}  // namespace polder::proxy
