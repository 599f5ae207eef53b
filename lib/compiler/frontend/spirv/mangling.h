// The names of OpenCL C's built-in functions as Clang mangles them for spir64: the rules of the Itanium C++ ABI (section 5.1)
// for the types of OpenCL, with address spaces as vendor qualifiers ("U3AS1").
//
//   MangledName("frexp", types).add(float_id).add(pointer_to_int_id).text()   is "_Z5frexpfPU3AS1i"
//
// SPIR-V's integers have no sign; the caller says which one the function's parameter has.
#pragma once

#include "types.h"

#include <string>
#include <string_view>

namespace polder::compiler::spirv {

enum class Sign : uint8_t { is_signed, is_unsigned };
// Short names for tables.
namespace signs {
inline constexpr Sign s = Sign::is_signed, u = Sign::is_unsigned;
}  // namespace signs

class MangledName {
public:
    MangledName(std::string_view name, const Types& types)
        : types_(types), text_("_Z" + std::to_string(name.size()) + std::string{name}) {}

    MangledName& add(uint32_t type, Sign sign = Sign::is_signed);
    // A pointer to const.
    MangledName& add_const_pointer(uint32_t type, Sign sign = Sign::is_signed);
    // A pointer to void in the pointer type's address space.
    MangledName& add_void_pointer(uint32_t type);
    // A type that has a code of its own: "i", "m".
    MangledName& add_code(std::string_view code);
    // A named type: "memory_scope", "ocl_event".
    MangledName& add_named(std::string_view name);
    // "_Z12get_work_dimv": no parameters.
    [[nodiscard]] std::string text() const { return has_parameters_ ? text_ : text_ + "v"; }

private:
    [[nodiscard]] std::string scalar(const Type& type, Sign sign) const;
    // The type in full, which decides whether it is the same as an earlier one.
    [[nodiscard]] std::string full(const Type& type, Sign sign, std::string_view pointee_qualifiers) const;
    // The type as it is written here: a reference to an earlier one where there is one.
    [[nodiscard]] std::string written(const Type& type, Sign sign, std::string_view pointee_qualifiers);
    [[nodiscard]] std::string qualifiers(const Type& pointer, std::string_view pointee_qualifiers) const;
    [[nodiscard]] std::optional<std::string> earlier(const std::string& full_text) const;
    MangledName& append(const std::string& parameter);

    const Types& types_;
    std::string text_;
    bool has_parameters_ = false;
    std::vector<std::string> components_;  // what later types may refer to, in order
};

// "uint4": the name of the type in OpenCL C.
[[nodiscard]] std::string opencl_name(const Types& types, uint32_t type, Sign sign);

}  // namespace polder::compiler::spirv
