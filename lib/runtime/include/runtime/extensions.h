// The extensions and optional features that Polder has: one table each, with a description of each entry. The results of queries, the
// compiler's list and the documentation are made from the tables. Constant; any thread.
#pragma once

#include <CL/cl.h>
#include <polder/driver.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polder::runtime {

// The property of a device that a feature requires.
enum class Needs : uint8_t { nothing, host_code };

struct Extension {
    // Which lists contain it: the platform's; platform's and devices'; only that of devices whose code Polder's compiler makes; of
    // those, only of devices that do not execute host functions; only devices' (`images`). The platform's list also has the extensions
    // that all its devices have.
    enum class Owner : uint8_t { platform, both, own_compiler, other_code, images };
    std::string_view name;
    cl_version version;
    Owner owner;
    std::string_view prose;
};

// An optional feature of OpenCL C 3.0, by the name of its macro.
struct Feature {
    std::string_view name;
    std::string_view prose;
    Needs needs = Needs::nothing;
};

[[nodiscard]] std::span<const Extension> extensions();
[[nodiscard]] std::span<const Feature> features();

// The names, separated by spaces, for CL_PLATFORM_EXTENSIONS and CL_DEVICE_EXTENSIONS.
[[nodiscard]] std::string platform_extension_names();
[[nodiscard]] std::string device_extension_names(const driver::DeviceInfo& device);
[[nodiscard]] std::vector<cl_name_version> platform_extension_versions();
[[nodiscard]] std::vector<cl_name_version> device_extension_versions(const driver::DeviceInfo& device);
[[nodiscard]] std::vector<cl_name_version> feature_versions(const driver::DeviceInfo& device);

// Whether a device has an extension or a feature. A device whose driver compiles kernels itself has only those that both that compiler
// and Polder have.
[[nodiscard]] bool offers(const driver::DeviceInfo& device, const Extension& extension);
[[nodiscard]] bool offers(const driver::DeviceInfo& device, const Feature& feature);
[[nodiscard]] bool offers_feature(const driver::DeviceInfo& device, std::string_view name);

// The intermediate languages from which programs can be made, newest first: "SPIR-V_1.6 …".
[[nodiscard]] std::string il_names(const driver::DeviceInfo& device);
[[nodiscard]] std::vector<cl_name_version> il_versions(const driver::DeviceInfo& device);

[[nodiscard]] cl_name_version name_version(std::string_view name, cl_version version);

}  // namespace polder::runtime
