// A kernel's parameters as drivers see them (polder/code.h). Pure; any thread.
#pragma once

#include <compiler/compiler.h>

namespace polder::compiler {

[[nodiscard]] inline driver::KernelParameter parameter_of(const KernelArgument& argument) {
    using Kind = driver::KernelParameter::Kind;
    switch (argument.kind) {
    case ArgumentKind::global_pointer: return {Kind::global_pointer, argument.offset, argument.size};
    case ArgumentKind::constant_pointer: return {Kind::constant_pointer, argument.offset, argument.size};
    case ArgumentKind::local_pointer: return {Kind::local_pointer, argument.offset, argument.size};
    default: return {Kind::value, argument.offset, argument.size};
    }
}

[[nodiscard]] inline std::vector<driver::KernelParameter> parameters_of(const KernelInfo& kernel) {
    std::vector<driver::KernelParameter> parameters;
    for (const KernelArgument& argument : kernel.arguments)
        parameters.push_back(parameter_of(argument));
    return parameters;
}

} // namespace polder::compiler
