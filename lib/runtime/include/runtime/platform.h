// Platform: the one platform "Polder" with the devices that POCL_DEVICES names.
//
// Made at first use, never destroyed: an application may release its handles from static destructors, or
// exit with work in flight. Any thread.
#pragma once

#include <runtime/device.h>

#include <span>
#include <string>
#include <vector>

namespace polder::runtime {

class Platform final : public Object {
public:
    static constexpr Kind kind = Kind::platform;
    static constexpr Status invalid = Status::invalid_platform;

    // An unknown name in POCL_DEVICES is an error in the log that lists the known ones; the platform
    // then has no devices.
    static Platform& get();

    [[nodiscard]] std::span<const Ref<Device>> devices() const { return devices_; }
    // All memory spaces, host memory first.
    [[nodiscard]] std::span<memory::Space* const> spaces() const { return spaces_; }

    // Of CL_PLATFORM_NAME and CL_PLATFORM_VERSION.
    [[nodiscard]] static std::string name();
    [[nodiscard]] static std::string version();

private:
    Platform();
    void open_devices();
    // The next `count` devices of `driver`, from its device `first` on.
    void open(driver::Driver& driver, uint32_t first, uint32_t count);
    void make_spaces_and_devices();

    std::vector<std::unique_ptr<driver::Driver>> drivers_;
    struct Opened {
        driver::Device* device;
        std::string driver_name;
        std::string parameters_name;  // for messages
        std::string allocation;  // the parameters about its memory's allocator
    };
    std::vector<Opened> opened_;
    uint32_t next_space_ = 1;
    std::vector<memory::Space*> spaces_;
    std::vector<Ref<Device>> devices_;
};

} // namespace polder::runtime
