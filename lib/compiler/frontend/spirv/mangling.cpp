// Writes a name parameter by parameter. A type that occurred before is written as a substitution ("S_", "S0_", …), as the Itanium
// ABI demands; components_ lists the types that can be referred to.
#include "mangling.h"

#include <algorithm>

namespace polder::compiler::spirv {
namespace {

std::string integer_code(uint32_t width, Sign sign) {
    const bool is_signed = sign == Sign::is_signed;
    switch (width) {
    case 8: return is_signed ? "c" : "h";
    case 16: return is_signed ? "s" : "t";
    case 64: return is_signed ? "l" : "m";
    default: return is_signed ? "i" : "j";
    }
}

std::string named(std::string_view name) { return std::to_string(name.size()) + std::string{name}; }

// S_, S0_ … S9_, SA_: base 36.
std::string reference(size_t index) {
    if (index == 0)
        return "S_";
    std::string digits;
    for (size_t left = index - 1;; left /= 36) {
        digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[left % 36]);
        if (left < 36)
            return "S" + digits + "_";
    }
}

}  // namespace

std::string MangledName::scalar(const Type& type, Sign sign) const {
    switch (type.kind) {
    case spv::OpTypeVoid: return "v";
    case spv::OpTypeBool: return "b";
    case spv::OpTypeInt: return integer_code(type.width, sign);
    case spv::OpTypeFloat: return type.width == 16 ? "Dh" : type.width == 64 ? "d" : "f";
    default: return {};
    }
}

std::string MangledName::qualifiers(const Type& pointer, std::string_view pointee_qualifiers) const {
    const unsigned space = address_space(pointer.storage).value_or(0);
    return (space == 0 ? "" : "U3AS" + std::to_string(space)) + std::string{pointee_qualifiers};
}

std::string MangledName::full(const Type& type, Sign sign, std::string_view pointee_qualifiers) const {
    switch (type.kind) {
    case spv::OpTypeVector: return "Dv" + std::to_string(type.count) + "_" + full(types_.get(type.element), sign, {});
    case spv::OpTypePointer:
        return "P" + qualifiers(type, pointee_qualifiers) + full(types_.get(type.element), sign, {});
    case spv::OpTypeEvent: return named("ocl_event");
    default: return scalar(type, sign);
    }
}

std::optional<std::string> MangledName::earlier(const std::string& full_text) const {
    const auto found = std::find(components_.begin(), components_.end(), full_text);
    if (found == components_.end())
        return std::nullopt;
    return reference(static_cast<size_t>(found - components_.begin()));
}

std::string MangledName::written(const Type& type, Sign sign, std::string_view pointee_qualifiers) {
    std::string whole = full(type, sign, pointee_qualifiers);
    if (type.kind != spv::OpTypeVector && type.kind != spv::OpTypePointer && type.kind != spv::OpTypeEvent)
        return whole;
    if (const auto known = earlier(whole))
        return *known;
    std::string text = whole;
    if (type.kind == spv::OpTypeVector)
        text = "Dv" + std::to_string(type.count) + "_" + written(types_.get(type.element), sign, {});
    if (type.kind == spv::OpTypePointer) {
        const std::string with = qualifiers(type, pointee_qualifiers);
        const std::string pointee = with + full(types_.get(type.element), sign, {});
        const auto known = with.empty() ? std::nullopt : earlier(pointee);
        text = "P" + (known ? *known : with + written(types_.get(type.element), sign, {}));
        if (!with.empty() && !known)
            components_.push_back(pointee);
    }
    components_.push_back(whole);
    return text;
}

MangledName& MangledName::append(const std::string& parameter) {
    text_ += parameter;
    has_parameters_ = true;
    return *this;
}

MangledName& MangledName::add(uint32_t type, Sign sign) { return append(written(types_.get(type), sign, {})); }

MangledName& MangledName::add_const_pointer(uint32_t type, Sign sign) {
    return append(written(types_.get(type), sign, "K"));
}

MangledName& MangledName::add_void_pointer(uint32_t type) {
    std::string code = "P";
    code.append(qualifiers(types_.get(type), {})).append("v");
    return append(code);
}

MangledName& MangledName::add_code(std::string_view code) { return append(std::string{code}); }

MangledName& MangledName::add_named(std::string_view name) {
    const std::string whole = named(name);
    if (const auto known = earlier(whole))
        return append(*known);
    components_.push_back(whole);
    return append(whole);
}

std::string opencl_name(const Types& types, uint32_t type, Sign sign) {
    const Type& of = types.get(type);
    if (of.kind == spv::OpTypeVector)
        return opencl_name(types, of.element, sign) + std::to_string(of.count);
    if (of.kind == spv::OpTypeFloat)
        return of.width == 16 ? "half" : of.width == 64 ? "double" : "float";
    const std::string prefix = sign == Sign::is_signed ? "" : "u";
    return prefix + (of.width == 8 ? "char" : of.width == 16 ? "short" : of.width == 64 ? "long" : "int");
}

}  // namespace polder::compiler::spirv
