// PTX of small programs for tests. Without NVIDIA's assembler (support/ptx_assembler.h) only the text is looked at.
#pragma once

#include "../support/ptx_assembler.h"
#include "compiler_support.h"

#include <array>
#include <vector>

namespace polder::compiler::test {

inline Target ptx_target(const std::string& processor = "sm_90") {
    Target gpu = target();
    gpu.code = {.format = driver::CodeFormat::ptx,
                .processor = processor,
                .sub_group_size = 32,
                .local_memory_bytes = uint64_t{227} << 10};
    return gpu;
}

using polder::test::assembler_errors;
using polder::test::ptxas;

struct PtxOutcome {
    std::shared_ptr<Executable> executable;
    driver::TargetCode code;
    std::string error;

    [[nodiscard]] bool has(std::string_view words) const { return code.code.find(words) != code.code.npos; }
};

inline PtxOutcome ptx_of(const std::shared_ptr<const Module>& module, std::string_view kernel,
                         const std::string& processor = "sm_90", const std::optional<WorkGroups>& groups = {}) {
    PtxOutcome outcome;
    auto opened = Executable::open(module, ptx_target(processor));
    if (!opened) {
        outcome.error = opened.error().detail();
        return outcome;
    }
    outcome.executable = *opened;
    const auto code = outcome.executable->code(kernel, groups);
    if (!code) {
        outcome.error = std::string{kernel} + ": " + std::string{code.error().detail()};
        return outcome;
    }
    outcome.code = std::get<driver::TargetCode>(**code);
    if (!ptxas().empty())
        outcome.error = assembler_errors(outcome.code.code, processor);
    return outcome;
}

// The first kernel of `source`, for a target that has more than the usual one.
inline PtxOutcome ptx_with(const std::vector<std::string>& extensions, const std::vector<std::string>& features,
                           const std::string& source, const std::string& processor,
                           const std::optional<WorkGroups>& groups = {}) {
    CompileInput input{.source = source, .headers = {}, .options = "-cl-std=CL3.0", .target = target()};
    input.target.extensions.insert(input.target.extensions.end(), extensions.begin(), extensions.end());
    input.target.features.insert(input.target.features.end(), features.begin(), features.end());
    input.is_build = true;
    std::string log;
    const auto compiled = compile(input, log);
    if (!compiled)
        return {nullptr, {}, log};
    const auto linked = link({{*compiled}, input.options, input.target, true}, log);
    if (!linked)
        return {nullptr, {}, log};
    return ptx_of(*linked, (*linked)->kernels().front().name, processor, groups);
}

// The oldest processor, one in the middle, the newest: code for each of them differs.
inline constexpr std::array all_processors{"sm_70", "sm_90", "sm_120"};

// Every kernel of `module` becomes PTX for all processors, which the assembler accepts.
inline void expect_ptx(const std::shared_ptr<const Module>& module) {
    for (const KernelInfo& kernel : module->kernels())
        for (const char* processor : all_processors)
            EXPECT_EQ(ptx_of(module, kernel.name, processor).error, "") << kernel.name << " for " << processor;
}

// The first kernel of a program, for sm_90, once it is known to be accepted for all processors.
inline PtxOutcome first_kernel(const Outcome& built, const std::optional<WorkGroups>& groups = {}) {
    if (built.status != Status::success)
        return {nullptr, {}, built.log};
    const std::string name = built.module->kernels().front().name;
    PtxOutcome outcome = ptx_of(built.module, name, "sm_90", groups);
    for (const char* processor : all_processors)
        if (outcome.error.empty())
            outcome.error = ptx_of(built.module, name, processor, groups).error;
    return outcome;
}

// The first kernel of `source`.
inline PtxOutcome one_kernel(const std::string& source, const std::string& options = "-cl-std=CL3.0",
                             const std::optional<WorkGroups>& groups = {}) {
    return first_kernel(build(source, options), groups);
}

#define EXPECT_HAS(outcome, words) EXPECT_TRUE((outcome).has(words)) << (words) << "\n" << (outcome).code.code

// How often `words` occur.
inline size_t count(std::string_view text, std::string_view words) {
    size_t found = 0;
    for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1))
        ++found;
    return found;
}

}  // namespace polder::compiler::test
