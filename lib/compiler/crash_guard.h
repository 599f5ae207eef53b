// Runs a piece of compilation so that an internal failure of LLVM (a fatal error, a crash of a pass) ends
// that piece and not the process.
//
// LLVM's CrashRecoveryContext does it: its signal handlers are installed only while a guarded piece runs on
// some thread, and put back after. What the piece had allocated is lost. Any thread; nests.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace polder::compiler {

// Empty when `work` returned; otherwise what LLVM said.
[[nodiscard]] std::optional<std::string> run_guarded(const std::function<void()>& work);

} // namespace polder::compiler
