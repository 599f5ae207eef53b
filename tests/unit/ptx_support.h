// PTX of small programs for tests, and NVIDIA's assembler, if it is there, to accept or refuse it.
//
// The assembler is POLDER_PTXAS, or `ptxas` in the search path or in a CUDA toolkit. Without it only the text is looked at.
#pragma once

#include "compiler_support.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>
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

// Empty when there is none.
inline const std::string& ptxas() {
    static const std::string path = [] {
        if (const char* const named = std::getenv("POLDER_PTXAS"))
            return std::string{named};
        std::string folders = std::getenv("PATH") ? std::getenv("PATH") : "";
        folders += ":/usr/local/cuda/bin";
        for (size_t begin = 0; begin < folders.size();) {
            const size_t end = std::min(folders.find(':', begin), folders.size());
            const std::string candidate = folders.substr(begin, end - begin) + "/ptxas";
            if (access(candidate.c_str(), X_OK) == 0)
                return candidate;
            begin = end + 1;
        }
        return std::string{};
    }();
    return path;
}

// Runs the assembler on a file; its output when it fails.
inline std::string assemble(const std::string& file, const std::string& processor) {
    // -O0: what is wrong is found without optimisation, which takes long.
    const std::string command = ptxas() + " -O0 -arch=" + processor + " -o /dev/null " + file + " 2>&1";
    std::string output;
    FILE* const pipe = popen(command.c_str(), "r");
    for (char line[512]; pipe && std::fgets(line, sizeof line, pipe);)
        output += line;
    const int status = pipe ? pclose(pipe) : -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "ptxas: " + output;
}

// What the assembler objects to; empty when it accepts `text`.
inline std::string assembler_errors(std::string_view text, const std::string& processor) {
    std::string name = (std::filesystem::temp_directory_path() / "polder-ptx-XXXXXX").string();
    const int file = mkstemp(name.data());
    if (file < 0)
        return "no temporary file";
    close(file);
    std::ofstream(name) << text;
    std::string errors = assemble(name, processor);
    // New assemblers know old processors no more. Code for an old processor is also code for a newer one.
    if (errors.find("option 'gpu-name'") != errors.npos)
        errors = assemble(name, processor < "sm_75" && processor.size() == 5 ? "sm_75" : processor);
    unlink(name.c_str());
    return errors;
}

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

}  // namespace polder::compiler::test
