// A kernel's parameters as drivers see them (polder/code.h). Pure; any thread.
#pragma once

#include <compiler/compiler.h>

#include <polder/image_abi.h>
#include <string_view>

namespace polder::compiler {

// `name`: "image2d_array_depth_t", ...
[[nodiscard]] inline driver::ImageType image_type_of(std::string_view name) {
    using driver::ImageType;
    if (name.starts_with("image3d"))
        return ImageType::image_3d;
    const bool is_array = name.find("_array") != name.npos;
    if (name.starts_with("image2d"))
        return is_array ? ImageType::array_2d : ImageType::image_2d;
    if (name.starts_with("image1d_buffer"))
        return ImageType::buffer_1d;
    return is_array ? ImageType::array_1d : ImageType::image_1d;
}

[[nodiscard]] inline driver::ImageUse image_use_of(KernelArgument::ImageAccess access) {
    switch (access) {
    case KernelArgument::ImageAccess::read_only: return driver::ImageUse::read;
    case KernelArgument::ImageAccess::write_only: return driver::ImageUse::write;
    default: return driver::ImageUse::read_write;
    }
}

[[nodiscard]] inline driver::KernelParameter parameter_of(const KernelArgument& argument) {
    using Kind = driver::KernelParameter::Kind;
    switch (argument.kind) {
    case ArgumentKind::global_pointer: return {Kind::global_pointer, argument.offset, argument.size};
    case ArgumentKind::constant_pointer: return {Kind::constant_pointer, argument.offset, argument.size};
    case ArgumentKind::local_pointer: return {Kind::local_pointer, argument.offset, argument.size};
    case ArgumentKind::image:
        return {Kind::image, argument.offset, sizeof(ImageDescriptor), image_type_of(argument.image_type),
                image_use_of(argument.image_access)};
    case ArgumentKind::sampler: return {Kind::sampler, argument.offset, argument.size};
    default: return {Kind::value, argument.offset, argument.size};
    }
}

[[nodiscard]] inline std::vector<driver::KernelParameter> parameters_of(const KernelInfo& kernel) {
    std::vector<driver::KernelParameter> parameters;
    parameters.reserve(kernel.arguments.size());
    for (const KernelArgument& argument : kernel.arguments)
        parameters.push_back(parameter_of(argument));
    return parameters;
}

} // namespace polder::compiler
