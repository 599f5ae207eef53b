// Loads object code into executable memory by LLVM's JITLink, without ORC.
//
// A LoadedObject owns its memory and frees it when it is destroyed; nothing is kept between objects. An object can refer only to
// the symbols of runtime_symbols.h and to those that the caller names, not to others of the process. Objects with debug information are announced to
// debuggers. Any thread.
#pragma once

#include <memory>
#include <polder/result.h>
#include <span>
#include <string>
#include <string_view>

namespace polder::compiler {

class LoadedObject {
public:
    virtual ~LoadedObject() = default;
    [[nodiscard]] virtual void* address() const = 0;
};

struct NamedAddress {
    std::string_view symbol;
    void* address;
};

// Loads the ELF file `object`; address() returns its symbol `entry`. `others`: symbols of objects that live longer. out_of_resources when a
// symbol is missing, when there is no memory, or when LLVM fails.
[[nodiscard]] Result<std::unique_ptr<LoadedObject>> load_object(std::string_view object, const std::string& entry,
                                                                std::span<const NamedAddress> others = {});

}  // namespace polder::compiler
