// Kernels in PTX text for tests of the interpreter (tests/support/ptx).
#pragma once

#include <gtest/gtest.h>
#include <support/ptx/module.h>

namespace polder::ptx::test {

inline std::string with_header(const std::string& body) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n" + body;
}

inline std::unique_ptr<Module> loaded(const std::string& body) {
    std::string log;
    std::unique_ptr<Module> module = Module::load(with_header(body), 90, log);
    EXPECT_NE(module, nullptr) << log;
    return module;
}

// What the text is refused for.
inline std::string refusal(const std::string& body) {
    std::string log;
    EXPECT_EQ(Module::load(with_header(body), 90, log), nullptr);
    return log;
}

// The statements of a kernel `k` with the parameter `memory`, which is in %rd0, and registers of all types.
inline std::string kernel(const std::string& statements, const std::string& before = "") {
    return before + R"(
.visible .entry k(.param .b64 memory)
{
    .reg .pred %p<16>;
    .reg .b16 %rs<16>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    ld.param.b64 %rd0, [memory];
)" + statements +
           "}\n";
}

// Runs the kernel `k` with `memory` as its memory.
inline Module::Outcome run(const Module& module, std::span<uint64_t> memory, const Module::Grid& grid = {}) {
    const auto begin = reinterpret_cast<uintptr_t>(memory.data());
    const uint64_t parameter = begin;
    const Function* const k = module.kernel("k");
    if (k == nullptr)
        return {Fault::launch_failed, "no kernel", 0};
    return module.run(*k, grid, std::as_bytes(std::span(&parameter, 1)), {{begin, begin + memory.size_bytes()}});
}

// Runs one block of `threads`, which must end well.
inline void run_threads(const std::string& body, std::span<uint64_t> memory, uint32_t threads,
                        uint64_t dynamic_shared_bytes = 0) {
    const auto module = loaded(body);
    ASSERT_NE(module, nullptr);
    const auto outcome = run(*module, memory, {{1, 1, 1}, {threads, 1, 1}, dynamic_shared_bytes});
    EXPECT_EQ(outcome.fault, Fault::none) << outcome.what;
}

}  // namespace polder::ptx::test
