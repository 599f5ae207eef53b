// Puts object code into memory and makes it callable (LLVM's ORC, without its platform support).
//
// One ORC session serves the process and is never destroyed, so that code may still run while the process
// exits; each object has its own JITDylib, and goes when its LoadedObject does. Objects see a short list of
// symbols and nothing else of the process. Any thread.
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

// Loads the ELF file `object`; its symbol `entry` is what address() answers. out_of_resources when a symbol
// is missing or there is no memory.
[[nodiscard]] Result<std::unique_ptr<LoadedObject>> load_object(std::string_view object, const std::string& entry);

} // namespace polder::compiler
