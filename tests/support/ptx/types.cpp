#include "types.h"

#include <algorithm>
#include <array>
#include <utility>

namespace polder::ptx {
namespace {

template <class Value, size_t count>
std::optional<Value> find(const std::array<std::pair<std::string_view, Value>, count>& all, std::string_view name) {
    const auto found = std::ranges::find(all, name, [](const auto& one) { return one.first; });
    return found == all.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<Type> type_named(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, Type>, 22> all{
        {{"pred", Type::pred},   {"b8", Type::b8},       {"b16", Type::b16},       {"b32", Type::b32},
         {"b64", Type::b64},     {"u8", Type::u8},       {"u16", Type::u16},       {"u32", Type::u32},
         {"u64", Type::u64},     {"s8", Type::s8},       {"s16", Type::s16},       {"s32", Type::s32},
         {"s64", Type::s64},     {"u16x2", Type::u16x2}, {"s16x2", Type::s16x2},   {"f16", Type::f16},
         {"f16x2", Type::f16x2}, {"bf16", Type::bf16},   {"bf16x2", Type::bf16x2}, {"f32", Type::f32},
         {"f32x2", Type::f32x2}, {"f64", Type::f64}}};
    return find(all, name);
}

std::optional<Space> space_named(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, Space>, 6> all{{{"global", Space::global},
                                                                            {"const", Space::constant},
                                                                            {"shared", Space::shared},
                                                                            {"shared::cta", Space::shared},
                                                                            {"local", Space::local},
                                                                            {"param", Space::parameter}}};
    return find(all, name);
}

}  // namespace polder::ptx
