// Code of cold built-in functions, which kernels share.
//
// The rare paths of built-in functions, such as sines of huge angles, are functions of their own, which are never inlined: one for a work-item, one for
// each width of vectors. Their code does not depend on the kernel, but was a third of the machine code of a small kernel. So the kernel's module
// only declares them. Each one is an object of its own. It is found by a hash of its code before optimisation: in memory, or in the disk cache.
//
// Any thread. A function that another thread is making is waited for, at most a second, because the compiler of that thread may crash. Nothing is locked
// while code is made.
#pragma once

#include "loader.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <polder/result.h>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace llvm {
class Module;
}

namespace polder::compiler {

struct ColdFunction {
    std::string symbol;  // has the hash in its name
    std::string object;  // ELF
    uint64_t stack_bytes = 0;
};

// Optimises a module and makes an object of it; the symbol is left empty.
using MakeColdFunction = std::function<Result<ColdFunction>(llvm::Module&)>;

// For byte_stream.h.
template <class T>
    requires std::is_same_v<std::remove_const_t<T>, ColdFunction>
auto fields_of(T& function) {
    return std::tie(function.symbol, function.object, function.stack_bytes);
}

// Makes declarations of the cold built-in functions of numbers that `module` calls, and returns their code. Those that refer to more than themselves, other built-in
// functions and constants stay in the module. `variant`: what `make` depends on, beside the code. `program`: the bitcode of which the module is one
// kernel. The functions of a program have the same code in all of its kernels, so their text is made for one kernel only. Empty where that is not so.
// Errors: those of `make`.
[[nodiscard]] Result<std::vector<ColdFunction>> separate_cold_functions(llvm::Module& module, std::string_view variant,
                                                                        const MakeColdFunction& make,
                                                                        std::string_view program = {});

// The function in executable memory, of which kernels that exist at the same time share one.
[[nodiscard]] Result<std::shared_ptr<const LoadedObject>> load_cold_function(const ColdFunction& function);

}  // namespace polder::compiler
