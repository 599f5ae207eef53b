// Formats of images: which there are, the size of their elements, and elements made of colors.
//
// Conversions follow OpenCL C 3.0, section 8.3 ("Conversion Rules"): normalized values are rounded to the nearest even.
#include <runtime/image.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace polder::runtime {
namespace {

bool is_packed(cl_channel_type type) {
    return (type >= CL_UNORM_SHORT_565 && type <= CL_UNORM_INT_101010) || type == CL_UNORM_INT_101010_2;
}

uint32_t channel_bytes(cl_channel_type type) {
    switch (type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8: return 1;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT: return 2;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT: return 4;
    default: return 0;
    }
}

uint32_t channel_count(cl_channel_order order) {
    switch (order) {
    case CL_R:
    case CL_A:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH: return 1;
    case CL_RG:
    case CL_RA:
    case CL_Rx: return 2;
    case CL_RGB:
    case CL_RGx:
    case CL_sRGB: return 3;
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_RGBx:
    case CL_sRGBx:
    case CL_sRGBA:
    case CL_sBGRA: return 4;
    default: return 0;
    }
}

bool is_srgb(cl_channel_order order) { return order >= CL_sRGB && order <= CL_sBGRA; }

// The accesses of kernels to images of a format.
enum class Use : uint8_t { read_and_write, read };

struct Formats {
    cl_channel_order order;
    std::span<const cl_channel_type> types;
    Use use = Use::read_and_write;
    bool is_depth = false;
};

constexpr cl_channel_type all_types[] = {CL_UNORM_INT8,     CL_UNORM_INT16,    CL_SNORM_INT8,   CL_SNORM_INT16,
                                         CL_SIGNED_INT8,    CL_SIGNED_INT16,   CL_SIGNED_INT32, CL_UNSIGNED_INT8,
                                         CL_UNSIGNED_INT16, CL_UNSIGNED_INT32, CL_HALF_FLOAT,   CL_FLOAT};
constexpr cl_channel_type rgba_types[] = {CL_UNORM_INT8,        CL_UNORM_INT16,    CL_SNORM_INT8,   CL_SNORM_INT16,
                                          CL_SIGNED_INT8,       CL_SIGNED_INT16,   CL_SIGNED_INT32, CL_UNSIGNED_INT8,
                                          CL_UNSIGNED_INT16,    CL_UNSIGNED_INT32, CL_HALF_FLOAT,   CL_FLOAT,
                                          CL_UNORM_INT_101010_2};
constexpr cl_channel_type byte_types[] = {CL_UNORM_INT8, CL_SNORM_INT8, CL_SIGNED_INT8, CL_UNSIGNED_INT8};
constexpr cl_channel_type real_types[] = {CL_UNORM_INT8,  CL_UNORM_INT16, CL_SNORM_INT8,
                                          CL_SNORM_INT16, CL_HALF_FLOAT,  CL_FLOAT};
constexpr cl_channel_type packed_types[] = {CL_UNORM_SHORT_565, CL_UNORM_SHORT_555, CL_UNORM_INT_101010};
constexpr cl_channel_type unorm8[] = {CL_UNORM_INT8};
constexpr cl_channel_type depth_types[] = {CL_UNORM_INT16, CL_FLOAT};

const Formats formats[] = {
    {CL_RGBA, rgba_types},
    {CL_BGRA, byte_types},
    {CL_ARGB, byte_types},
    {CL_ABGR, byte_types},
    {CL_R, all_types},
    {CL_A, all_types},
    {CL_RG, all_types},
    {CL_RA, all_types},
    {CL_INTENSITY, real_types},
    {CL_LUMINANCE, real_types},
    {CL_RGB, packed_types},
    {CL_RGBx, packed_types},
    {CL_sRGBA, unorm8, Use::read},
    {CL_sBGRA, unorm8, Use::read},
    {CL_sRGBx, unorm8, Use::read},
    {CL_DEPTH, depth_types, Use::read_and_write, true},
};

bool fits_type(const Formats& of, cl_mem_object_type type) {
    return !of.is_depth || type == CL_MEM_OBJECT_IMAGE2D || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
}

// --- elements ---

uint32_t unorm(float value, uint32_t max) {
    const float scaled = value * static_cast<float>(max);
    if (!(scaled > 0))
        return 0;  // NaN too
    return scaled >= static_cast<float>(max) ? max : static_cast<uint32_t>(std::nearbyint(scaled));
}

int32_t snorm(float value, int32_t max) {
    const float scaled = value * static_cast<float>(max);
    if (std::isnan(scaled))
        return 0;
    return static_cast<int32_t>(
        std::nearbyint(std::clamp(scaled, static_cast<float>(-max - 1), static_cast<float>(max))));
}

// IEEE 754 binary16, rounded to the nearest even; values too large become infinite.
uint16_t half_of(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000)
        return sign | 0x7c00;
    if (magnitude < 0x38800000) {
        // The result is subnormal: adding 0.5 leaves the rounded value in the lowest bits.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
    }
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float srgb_of_linear(float linear) {
    if (!(linear > 0))
        return 0;  // NaN too
    if (linear < 0.0031308f)
        return 12.92f * linear;
    return linear >= 1 ? 1.0f : static_cast<float>(1.055 * std::pow(static_cast<double>(linear), 1.0 / 2.4) - 0.055);
}

// A color's components by their place in memory; -1: no component.
std::array<int, 4> components_in_order(cl_channel_order order) {
    switch (order) {
    case CL_A: return {3, -1, -1, -1};
    case CL_RA: return {0, 3, -1, -1};
    case CL_BGRA:
    case CL_sBGRA: return {2, 1, 0, 3};
    case CL_ARGB: return {3, 0, 1, 2};
    case CL_ABGR: return {3, 2, 1, 0};
    default: return {0, 1, 2, 3};
    }
}

struct Color {
    std::array<float, 4> real;
    std::array<int32_t, 4> whole;

    [[nodiscard]] uint32_t channel(cl_channel_type type, int component) const {
        const auto at = static_cast<size_t>(component);
        const auto natural = static_cast<uint32_t>(whole[at]);
        switch (type) {
        case CL_SNORM_INT8: return static_cast<uint32_t>(snorm(real[at], 127));
        case CL_SNORM_INT16: return static_cast<uint32_t>(snorm(real[at], 32767));
        case CL_UNORM_INT8: return unorm(real[at], 255);
        case CL_UNORM_INT16: return unorm(real[at], 65535);
        case CL_SIGNED_INT8: return static_cast<uint32_t>(std::clamp(whole[at], -128, 127));
        case CL_SIGNED_INT16: return static_cast<uint32_t>(std::clamp(whole[at], -32768, 32767));
        case CL_UNSIGNED_INT8: return std::min(natural, 255u);
        case CL_UNSIGNED_INT16: return std::min(natural, 65535u);
        case CL_HALF_FLOAT: return half_of(real[at]);
        default: return natural;  // 32-bit types: the bits of the color's component
        }
    }
};

uint32_t packed_element(cl_channel_type type, const std::array<float, 4>& color) {
    switch (type) {
    case CL_UNORM_SHORT_565: return unorm(color[0], 31) << 11 | unorm(color[1], 63) << 5 | unorm(color[2], 31);
    case CL_UNORM_SHORT_555: return unorm(color[0], 31) << 10 | unorm(color[1], 31) << 5 | unorm(color[2], 31);
    case CL_UNORM_INT_101010: return unorm(color[0], 1023) << 20 | unorm(color[1], 1023) << 10 | unorm(color[2], 1023);
    default:
        return unorm(color[0], 1023) << 22 | unorm(color[1], 1023) << 12 | unorm(color[2], 1023) << 2 |
               unorm(color[3], 3);
    }
}

}  // namespace

std::optional<uint32_t> element_bytes(const cl_image_format& format) {
    const cl_channel_order order = format.image_channel_order;
    const cl_channel_type type = format.image_channel_data_type;
    if (type == CL_UNORM_INT_101010_2)
        return order == CL_RGBA ? std::optional<uint32_t>{4} : std::nullopt;
    if (is_packed(type)) {
        if (order != CL_RGB && order != CL_RGBx)
            return std::nullopt;
        return type == CL_UNORM_INT_101010 ? 4 : 2;
    }
    const uint32_t bytes = channel_bytes(type) * channel_count(order);
    if (bytes == 0 || !std::has_single_bit(bytes))
        return std::nullopt;
    return bytes;
}

bool is_supported(const cl_image_format& format, cl_mem_object_type type) {
    return std::ranges::any_of(formats, [&](const Formats& of) {
        return of.order == format.image_channel_order && fits_type(of, type) &&
               std::ranges::find(of.types, format.image_channel_data_type) != of.types.end();
    });
}

std::vector<cl_image_format> supported_formats(cl_mem_flags flags, cl_mem_object_type type) {
    const bool may_write = flags & (CL_MEM_WRITE_ONLY | CL_MEM_READ_WRITE | CL_MEM_KERNEL_READ_AND_WRITE);
    const bool is_default = !(flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_READ_WRITE |
                                       CL_MEM_KERNEL_READ_AND_WRITE));  // CL_MEM_READ_WRITE
    std::vector<cl_image_format> list;
    for (const Formats& of : formats)
        if (fits_type(of, type) && (of.use == Use::read_and_write || !(may_write || is_default)))
            for (const cl_channel_type channel : of.types)
                list.push_back({of.order, channel});
    return list;
}

ImageElement element_of_color(const cl_image_format& format, const void* color) {
    const cl_channel_order order = format.image_channel_order;
    const cl_channel_type type = format.image_channel_data_type;
    Color given{};
    const size_t given_bytes = order == CL_DEPTH ? sizeof(float) : sizeof given.real;
    std::memcpy(given.real.data(), color, given_bytes);
    std::memcpy(given.whole.data(), color, given_bytes);
    if (is_srgb(order))
        for (size_t i = 0; i < 3; ++i)
            given.real[i] = srgb_of_linear(given.real[i]);
    ImageElement element;
    element.size = *element_bytes(format);
    if (is_packed(type)) {
        const uint32_t packed = packed_element(type, given.real);
        std::memcpy(element.bytes.data(), &packed, element.size);
        return element;
    }
    const uint32_t bytes = channel_bytes(type);
    const std::array<int, 4> components = components_in_order(order);
    for (uint32_t i = 0; i < channel_count(order); ++i) {
        const uint32_t value = given.channel(type, components[i]);
        std::memcpy(element.bytes.data() + size_t{i} * bytes, &value, bytes);
    }
    return element;
}

}  // namespace polder::runtime
