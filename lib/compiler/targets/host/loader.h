// Puts object code into memory and makes it callable (LLVM's JITLink, without ORC around it).
//
// An object owns its memory and gives it back when it is destroyed; nothing is kept between objects. Objects see a short
// list of symbols (runtime_symbols.h) and nothing else of the process. Those with debug information are announced to
// debuggers. Any thread.
#pragma once

#include <memory>
#include <polder/result.h>
#include <string>
#include <string_view>

namespace polder::compiler {

class LoadedObject {
public:
    virtual ~LoadedObject() = default;
    [[nodiscard]] virtual void* address() const = 0;
};

// Loads the ELF file `object`; address() returns its symbol `entry`. out_of_resources when a symbol is missing, when there
// is no memory, or when LLVM fails.
[[nodiscard]] Result<std::unique_ptr<LoadedObject>> load_object(std::string_view object, const std::string& entry);

}  // namespace polder::compiler
