// Writing LLVM modules as bitcode, and reading them.
#pragma once

#include <llvm/IR/Module.h>
#include <memory>
#include <polder/result.h>
#include <string>
#include <string_view>

namespace polder::compiler {

[[nodiscard]] std::string write_bitcode(const llvm::Module& module);

enum class BitcodeReading : uint8_t { whole, lazy };
// A lazy module reads function bodies from `bytes` when they are needed, so `bytes` must outlive it. invalid_binary when `bytes`
// is not bitcode.
[[nodiscard]] Result<std::unique_ptr<llvm::Module>> read_bitcode(std::string_view bytes, llvm::LLVMContext& context,
                                                                 BitcodeReading reading);

}  // namespace polder::compiler
