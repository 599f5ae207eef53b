// Sampling as the specification describes it (OpenCL C 3.0, sections 6.15.15 and 8), one coordinate after the other, in double
// precision where that changes no choice of an element. Written from the specification, not from lib/kernel.
#pragma once

#include "images.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace polder::test {

using Color = std::array<double, 4>;

inline double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

struct ReferenceImage {
    cl_image_format format;
    Triple extent;  // with the layers of an array behind its dimensions
    size_t dims;  // 1, 2, 3: how many coordinates are sampled
    bool is_array;
    std::vector<uint8_t> bytes;

    [[nodiscard]] size_t channels() const {
        switch (format.image_channel_order) {
        case CL_RG:
        case CL_RA: return 2;
        case CL_RGBA:
        case CL_BGRA:
        case CL_ARGB:
        case CL_ABGR:
        case CL_sRGBA:
        case CL_sBGRA:
        case CL_sRGBx: return 4;
        default: return 1;
        }
    }
    [[nodiscard]] size_t channel_bytes() const {
        switch (format.image_channel_data_type) {
        case CL_UNORM_INT8:
        case CL_SNORM_INT8:
        case CL_SIGNED_INT8:
        case CL_UNSIGNED_INT8: return 1;
        case CL_UNORM_INT_101010:
        case CL_UNORM_INT_101010_2:
        case CL_SIGNED_INT32:
        case CL_UNSIGNED_INT32:
        case CL_FLOAT: return 4;
        default: return 2;
        }
    }
    [[nodiscard]] bool is_packed() const {
        const cl_channel_type type = format.image_channel_data_type;
        return type == CL_UNORM_SHORT_565 || type == CL_UNORM_SHORT_555 || type == CL_UNORM_INT_101010 ||
               type == CL_UNORM_INT_101010_2;
    }
    [[nodiscard]] size_t element_bytes() const { return is_packed() ? channel_bytes() : channels() * channel_bytes(); }

    template <class T>
    [[nodiscard]] T stored(size_t at) const {
        T value;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        return value;
    }
    [[nodiscard]] double channel(size_t at) const {
        switch (format.image_channel_data_type) {
        case CL_UNORM_INT8: return stored<uint8_t>(at) / 255.0;
        case CL_UNORM_INT16: return stored<uint16_t>(at) / 65535.0;
        case CL_SNORM_INT8: return std::max(stored<int8_t>(at) / 127.0, -1.0);
        case CL_SNORM_INT16: return std::max(stored<int16_t>(at) / 32767.0, -1.0);
        case CL_SIGNED_INT8: return stored<int8_t>(at);
        case CL_SIGNED_INT16: return stored<int16_t>(at);
        case CL_SIGNED_INT32: return stored<int32_t>(at);
        case CL_UNSIGNED_INT8: return stored<uint8_t>(at);
        case CL_UNSIGNED_INT16: return stored<uint16_t>(at);
        case CL_UNSIGNED_INT32: return stored<uint32_t>(at);
        case CL_HALF_FLOAT: return half_value(stored<uint16_t>(at));
        default: return stored<float>(at);
        }
    }
    [[nodiscard]] Color packed(size_t at) const {
        switch (format.image_channel_data_type) {
        case CL_UNORM_SHORT_565: {
            const uint16_t c = stored<uint16_t>(at);
            return {(c >> 11) / 31.0, (c >> 5 & 63) / 63.0, (c & 31) / 31.0, 1};
        }
        case CL_UNORM_SHORT_555: {
            const uint16_t c = stored<uint16_t>(at);
            return {(c >> 10 & 31) / 31.0, (c >> 5 & 31) / 31.0, (c & 31) / 31.0, 1};
        }
        case CL_UNORM_INT_101010: {
            const uint32_t c = stored<uint32_t>(at);
            return {(c >> 20 & 1023) / 1023.0, (c >> 10 & 1023) / 1023.0, (c & 1023) / 1023.0, 1};
        }
        default: {
            const uint32_t c = stored<uint32_t>(at);
            return {(c >> 22) / 1023.0, (c >> 12 & 1023) / 1023.0, (c >> 2 & 1023) / 1023.0, (c & 3) / 3.0};
        }
        }
    }
    [[nodiscard]] bool is_inside(const std::array<int, 3>& at) const {
        for (size_t i = 0; i < 3; ++i)
            if (at[i] < 0 || at[i] >= static_cast<int>(extent[i]))
                return false;
        return true;
    }
    [[nodiscard]] Color border() const {
        switch (format.image_channel_order) {
        case CL_R:
        case CL_RG:
        case CL_RGB:
        case CL_LUMINANCE:
        case CL_sRGB: return {0, 0, 0, 1};
        default: return {0, 0, 0, 0};
        }
    }
    [[nodiscard]] Color color(const std::array<int, 3>& at) const {
        if (!is_inside(at))
            return border();
        const size_t index = (static_cast<size_t>(at[2]) * extent[1] + static_cast<size_t>(at[1])) * extent[0] +
                             static_cast<size_t>(at[0]);
        const size_t place = index * element_bytes();
        if (is_packed())
            return packed(place);
        std::array<double, 4> c{};
        for (size_t i = 0; i < channels(); ++i)
            c[i] = channel(place + i * channel_bytes());
        const auto linear = [](double s) { return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4); };
        switch (format.image_channel_order) {
        case CL_R: return {c[0], 0, 0, 1};
        case CL_A: return {0, 0, 0, c[0]};
        case CL_RG: return {c[0], c[1], 0, 1};
        case CL_RA: return {c[0], 0, 0, c[1]};
        case CL_BGRA: return {c[2], c[1], c[0], c[3]};
        case CL_ARGB: return {c[1], c[2], c[3], c[0]};
        case CL_ABGR: return {c[3], c[2], c[1], c[0]};
        case CL_INTENSITY: return {c[0], c[0], c[0], c[0]};
        case CL_LUMINANCE: return {c[0], c[0], c[0], 1};
        case CL_sRGBA: return {linear(c[0]), linear(c[1]), linear(c[2]), c[3]};
        case CL_sBGRA: return {linear(c[2]), linear(c[1]), linear(c[0]), c[3]};
        case CL_sRGBx: return {linear(c[0]), linear(c[1]), linear(c[2]), 1};
        default: return c;
        }
    }
};

struct ReferenceSampler {
    cl_bool normalized;
    cl_addressing_mode address;
    cl_filter_mode filter;
};

class ReferenceSampling {
public:
    ReferenceSampling(const ReferenceImage& image, const ReferenceSampler& sampler)
        : image_(image), sampler_(sampler) {}

    [[nodiscard]] Color at(const std::array<float, 4>& s) const {
        return sampler_.filter == CL_FILTER_LINEAR ? linear(s) : nearest(s);
    }
    [[nodiscard]] Color at_whole(const std::array<int, 4>& s) const {
        std::array<int, 3> at{};
        for (size_t i = 0; i < image_.dims; ++i)
            at[i] = addressed(s[i], size(i));
        if (image_.is_array)
            at[image_.dims] = std::clamp(s[image_.dims], 0, size(image_.dims) - 1);
        return image_.color(at);
    }

private:
    [[nodiscard]] int size(size_t i) const { return static_cast<int>(image_.extent[i]); }

    [[nodiscard]] int addressed(int place, int size) const {
        switch (sampler_.address) {
        case CL_ADDRESS_CLAMP_TO_EDGE: return std::clamp(place, 0, size - 1);
        case CL_ADDRESS_CLAMP: return std::clamp(place, -1, size);
        default: return place;
        }
    }
    [[nodiscard]] float unnormalized(float s, int size) const {
        switch (sampler_.address) {
        case CL_ADDRESS_REPEAT: return (s - std::floor(s)) * static_cast<float>(size);
        case CL_ADDRESS_MIRRORED_REPEAT: {
            const float even = 2.0f * std::nearbyint(0.5f * s);
            return std::fabs(s - even) * static_cast<float>(size);
        }
        default: return sampler_.normalized ? s * static_cast<float>(size) : s;
        }
    }
    [[nodiscard]] int layer(const std::array<float, 4>& s) const {
        return std::clamp(static_cast<int>(std::nearbyint(s[image_.dims])), 0, size(image_.dims) - 1);
    }

    [[nodiscard]] Color nearest(const std::array<float, 4>& s) const {
        std::array<int, 3> at{};
        for (size_t i = 0; i < image_.dims; ++i) {
            const int place = static_cast<int>(std::floor(unnormalized(s[i], size(i))));
            switch (sampler_.address) {
            case CL_ADDRESS_REPEAT: at[i] = place > size(i) - 1 ? place - size(i) : place; break;
            case CL_ADDRESS_MIRRORED_REPEAT: at[i] = std::min(place, size(i) - 1); break;
            default: at[i] = addressed(place, size(i));
            }
        }
        if (image_.is_array)
            at[image_.dims] = layer(s);
        return image_.color(at);
    }

    [[nodiscard]] Color linear(const std::array<float, 4>& s) const {
        std::array<std::array<int, 2>, 3> places{};
        std::array<double, 3> parts{};
        for (size_t i = 0; i < image_.dims; ++i) {
            const float place = unnormalized(s[i], size(i)) - 0.5f;
            int low = static_cast<int>(std::floor(place));
            int high = low + 1;
            parts[i] = static_cast<double>(place) - std::floor(place);
            switch (sampler_.address) {
            case CL_ADDRESS_REPEAT:
                low = low < 0 ? size(i) + low : low;
                high = high > size(i) - 1 ? high - size(i) : high;
                break;
            case CL_ADDRESS_MIRRORED_REPEAT:
                low = std::max(low, 0);
                high = std::min(high, size(i) - 1);
                break;
            default: low = addressed(low, size(i)); high = addressed(high, size(i));
            }
            places[i] = {low, high};
        }
        Color sum{};
        for (unsigned corner = 0; corner < 1u << image_.dims; ++corner) {
            std::array<int, 3> at{};
            double weight = 1;
            for (size_t i = 0; i < image_.dims; ++i) {
                const bool is_high = corner >> i & 1;
                at[i] = places[i][is_high];
                weight *= is_high ? parts[i] : 1 - parts[i];
            }
            if (image_.is_array)
                at[image_.dims] = layer(s);
            const Color color = image_.color(at);
            for (size_t c = 0; c < 4; ++c)
                sum[c] += weight * color[c];
        }
        return sum;
    }

    const ReferenceImage& image_;
    const ReferenceSampler sampler_;
};

}  // namespace polder::test
