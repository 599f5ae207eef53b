// Structures whose length is an argument, such as the pixels of an image with `channels` channels (structure_lengths.h), elements whose stride is
// one (element_strides.h), and divisors that are compared with one (asked_divisors.h).
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* grey = R"(
    kernel void k(global const float* in, global float* out, uint width, uint channels) {
        const uint x = get_global_id(0), y = get_global_id(1);
        const uint place = width * channels * y + x * channels;
        const float sum = in[place] * 0.25f + in[place + 1] * 0.5f + in[place + 2] * 0.25f;
        out[y * width + x] = sum;
    })";

std::string code_of(const char* source) {
    Compiled program(source, processor_with_512_bits);
    EXPECT_EQ(program.prepare("k"), "");
    return program.optimised();
}

bool contains(const std::string& code, const char* text) { return code.find(text) != std::string::npos; }

bool has_copies(const std::string& code) { return contains(code, "items.x.length"); }

TEST(StructureLengths, ThatAreAnArgument_HaveRowsOfThreeAndOfFour) {
    const std::string code = code_of(grey);
    EXPECT_TRUE(contains(code, "load <48 x float>")) << code;
    EXPECT_FALSE(contains(code, "apart")) << code;  // no vector of lanes checks its addresses
}

TEST(StructureLengths, OfTwoAndFourElements) {
    EXPECT_TRUE(has_copies(code_of(R"(
        kernel void k(global const float* in, global float* out, int length) {
            global const float* p = in + get_global_id(0) * length;
            out[get_global_id(0)] = p[0] * p[1];
        })")));
    EXPECT_TRUE(has_copies(code_of(R"(
        kernel void k(global const uchar* in, global uchar* out, int length) {
            const int i = get_global_id(0);
            for (int c = 0; c < 4; ++c)
                out[i * length + c] = 255 - in[i * length + c];
        })")));
}

TEST(StructureLengths, OfVectors) {
    EXPECT_TRUE(has_copies(code_of(R"(
        kernel void k(global const float* in, global float* out, int length) {
            const size_t i = get_global_id(0);
            const float3 v = vload3(0, in + i * length);
            out[i] = v.x * v.x + v.y * v.y + v.z * v.z;
        })")));
}

// The row's length is as a rule not the number of elements that one round of the loop reads.
TEST(StructureLengths, OfRowsThatALoopWalks_AreNotGuessed) {
    EXPECT_FALSE(has_copies(code_of(R"(
        kernel void k(global const float* in, global const float* x, global float* out, int n) {
            const int i = get_global_id(0);
            float sum = 0;
            for (int j = 0; j < n; j += 2)
                sum += in[i * n + j] * x[j] + in[i * n + j + 1] * x[j + 1];
            out[i] = sum;
        })")));
}

// Neither is that of a row from which a work-item reads its neighbours, whichever dimension the lanes are of.
TEST(StructureLengths, OfRowsWithNeighbours_AreNotGuessed) {
    Compiled program(R"(
        kernel void k(global const float* in, global float* out, int w) {
            const int x = get_global_id(0), y = get_global_id(1);
            out[y * w + x] = in[y * w + x] + in[y * w + x + 1] + in[y * w + x + 2];
        }
        kernel void tiles(global const float* in, global float* out, int w, int tiles) {
            const int t = get_global_id(0), x = t % tiles * 2, y = t / tiles;
            out[t] = in[y * w + x] * in[y * w + x + 1];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {1, 64, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_FALSE(contains(program.optimised(), "length")) << program.optimised();
    ASSERT_EQ(program.prepare("tiles"), "");
    EXPECT_FALSE(contains(program.optimised(), "length")) << program.optimised();
}

TEST(StructureLengths, OfSingleElements_AreNotGuessed) {
    EXPECT_FALSE(has_copies(code_of(R"(
        kernel void k(global const float* in, global float* out, int step) {
            out[get_global_id(0)] = in[get_global_id(0) * step] + 1;
        })")));
}

// Each work-item changes its structure, which may be as long as it is accessed, longer, or overlap with the next one.
TEST(StructureLengths, HaveTheResultsOfEachLength) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, uint width, uint channels, local int* last) {
            const uint x = get_global_id(0), y = get_global_id(1);
            const uint place = width * channels * y + x * channels;
            int own[4] = {0, 0, 0, 0};
            own[in[place] & 3] = 7;
            const int next = x + 1 < width ? in[place + channels] + 3 * in[place + channels + 1] + 5 * in[place + channels + 2] : 1;
            out[place] = in[place + 1] - next + own[0];
            out[place + 1] = in[place] + next + own[1];
            if (channels > 2)
                out[place + 2] = in[place + 2] * next + own[2];
            if (channels > 3)
                out[place + 3] = -next + own[3];
            barrier(CLK_LOCAL_MEM_FENCE);
            out[place] += (int)get_local_id(0);
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "items.x.length")) << program.optimised();
    constexpr uint32_t width = 40, height = 3;
    for (uint32_t channels = 2; channels <= 6; ++channels) {
        const size_t size = size_t{width} * height * channels;
        std::vector<int32_t> in(size + 8), out(size + 8, -1), expected(size + 8, -1);
        for (size_t i = 0; i < in.size(); ++i)
            in[i] = static_cast<int32_t>(i * 2654435761U >> 20);
        for (uint32_t y = 0; y < height; ++y)
            for (uint32_t x = 0; x < width; ++x) {
                const size_t place = (size_t{width} * y + x) * channels;
                std::array<int32_t, 4> own{};
                own.at(static_cast<size_t>(in[place] & 3)) = 7;
                const size_t after = place + channels;
                const int32_t next = x + 1 < width ? in[after] + 3 * in[after + 1] + 5 * in[after + 2] : 1;
                expected[place] = in[place + 1] - next + own[0] + static_cast<int32_t>(x % 20);
                expected[place + 1] = in[place] + next + own[1];
                if (channels > 2)
                    expected[place + 2] = in[place + 2] * next + own[2];
                if (channels > 3)
                    expected[place + 3] = -next + own[3];
            }
        Arguments arguments;
        arguments.add(in.data()).add(out.data()).add(width).add(channels).add_local(16);
        program.run({.dimensions = 2, .global = {width, height, 1}, .local = {20, 1, 1}}, arguments);
        EXPECT_EQ(out, expected) << channels;
    }
}

// Indices of 32 bits that wrap around to 0 in the 21st work-item: the ones before are not in the buffer.
TEST(StructureLengths, OfIndicesThatWrapAround_AreRight) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, uint length, uint first) {
            const uint x = get_global_id(0), place = first + x * length;
            if (place < 400)
                out[place] = in[place] + 3 * in[place + 1] + 5 * in[place + 2];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "items.x.length")) << program.optimised();
    constexpr uint32_t length = 3, items = 40, wrapping = 20;
    std::vector<int32_t> in(512), out(512, -1), expected(out);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<int32_t>(i * 2654435761U >> 20);
    for (size_t place = 0; place < size_t{items - wrapping} * length; place += length)
        expected[place] = in[place] + 3 * in[place + 1] + 5 * in[place + 2];
    program.run({.dimensions = 1, .global = {items, 1, 1}, .local = {items, 1, 1}},
                Arguments().add(in.data()).add(out.data()).add(length).add(0U - wrapping * length));
    EXPECT_EQ(out, expected);
}

constexpr const char* strided_copy = R"(
    typedef struct { long dims[2]; long strides[2]; } Array;
    kernel void k(global float* out, const Array o, global const float* in, const Array i) {
        const int x = get_global_id(0), y = get_global_id(1);
        if (x < o.dims[0] && y < o.dims[1])
            out[x * (int)o.strides[0] + y * (int)o.strides[1]] = 2 * in[x * (int)i.strides[0] + y * (int)i.strides[1]];
    })";

// As libraries of arrays pass them. The first dimension's are mostly 1.
TEST(ElementStrides, ThatAreArguments_HaveRowsForOne) {
    const std::string code = code_of(strided_copy);
    EXPECT_TRUE(has_copies(code)) << code;
    EXPECT_TRUE(contains(code, "masked.load.v16f32")) << code;
    EXPECT_TRUE(contains(code, "masked.store.v16f32")) << code;
}

// In bytes, and in a loop that goes on by the number of work-items.
TEST(ElementStrides, OfBytesInALoopOverTheGrid_HaveRows) {
    const std::string code = code_of(R"(
        kernel void k(global uchar* out, int step, int pitch, int width) {
            const int y = get_global_id(1);
            for (int x = get_global_id(0); x < width; x += get_global_size(0))
                *(global float*)(out + (x * step + y * pitch)) += 1;
        })");
    EXPECT_TRUE(has_copies(code)) << code;
}

TEST(ElementStrides, ThatAreLengthsOfRows_AreNotGuessed) {
    EXPECT_FALSE(has_copies(code_of(R"(
        kernel void columns(global const float* in, global float* out, int height, int pitch) {
            const int x = get_global_id(0), y = get_global_id(1);
            out[y * pitch + x] = in[x * height + y];
        }
        kernel void k(global const float* in, global float* out, int n, int m) {
            const int i = get_global_id(0), b = get_global_id(1);
            float sum = in[i * n + b * m];
            for (int j = 1; j < n; ++j)
                sum += in[i * n + b * m + j];
            out[b * 1024 + i] = sum;
        })")));
}

// A transposition, in which one of the strides would be 1, but it is not known which.
TEST(ElementStrides, OfBothDimensions_AreNotGuessed) {
    EXPECT_FALSE(has_copies(code_of(R"(
        kernel void k(global const float* in, global float* out, int s0, int s1) {
            const int x = get_global_id(0), y = get_global_id(1);
            out[x * s0 + y * s1] = in[x * s1 + y * s0];
        })")));
}

TEST(ElementStrides, HaveTheResultsOfEachStride) {
    struct Array {
        std::array<int64_t, 2> dims, strides;
    };
    Compiled program(strided_copy);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "items.x.length")) << program.optimised();
    constexpr int64_t width = 39, height = 3;
    for (const int64_t in_step : {1, 0, 2, -1})
        for (const int64_t out_step : {1, 2, 3}) {
            const Array to{{width, height}, {out_step, width * 3}}, from{{width, height}, {in_step, width * 2}};
            std::vector<float> in(width * (height + 1) * 2), out(width * height * 3, -1), expected(out);
            for (size_t i = 0; i < in.size(); ++i)
                in[i] = static_cast<float>(i);
            const int64_t first = in_step < 0 ? width : 0;
            for (int64_t y = 0; y < height; ++y)
                for (int64_t x = 0; x < width; ++x)
                    expected[static_cast<size_t>(x * out_step + y * to.strides[1])] =
                        2 * in[static_cast<size_t>(first + x * in_step + y * from.strides[1])];
            Arguments arguments;
            arguments.add(out.data()).add(to).add(in.data() + first).add(from);
            program.run({.dimensions = 2, .global = {40, height, 1}, .local = {20, 1, 1}}, arguments);
            EXPECT_EQ(out, expected) << in_step << " " << out_step;
        }
}

constexpr const char* passes = R"(
    kernel void k(global const float* in, global float* out, uint p, uint threads) {
        const size_t i = get_global_id(0);
        if (i >= threads)
            return;
        const size_t place = i % p;
        float a = in[i], b = in[i + threads];
        if (p != 1)
            b *= native_cos(place * 0.5f / p);
        global float* to = out + place + (i - place) * 2;
        to[0] = a + b;
        to[p] = a - b;
    })";

// The first pass of a transformation has rows of whole vectors.
TEST(AskedDivisors, HaveACopyForOne) {
    const std::string code = code_of(passes);
    EXPECT_TRUE(has_copies(code)) << code;
    EXPECT_TRUE(contains(code, "store <32 x float>")) << code;
}

TEST(AskedDivisors, ThatAreNotAskedForOrDivideNothing_HaveNoCopy) {
    EXPECT_FALSE(has_copies(code_of(R"(
        kernel void k(global const float* in, global float* out, uint p) {
            const size_t i = get_global_id(0), place = i % p;
            out[place + (i - place) * 2] = in[i];
        })")));
    EXPECT_FALSE(has_copies(code_of(R"(
        kernel void k(global const float* in, global float* out, uint p) {
            const size_t i = get_global_id(0);
            out[i] = p != 1 ? native_cos(in[i] * p) : in[i];
        })")));
}

TEST(AskedDivisors, GiveTheSameResults) {
    constexpr uint32_t threads = 150;
    std::vector<float> in(size_t{2} * threads);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i);
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
            kernel void k(global const float* in, global float* out, uint p, uint threads) {
                const size_t i = get_global_id(0);
                if (i >= threads)
                    return;
                const size_t place = i % p;
                float b = in[i + threads];
                if (p != 1)
                    b *= 2;
                global float* to = out + place + (i - place) * 2;
                to[0] = in[i] + b;
                to[p] = in[i] - b;
            })",
                         processor);
        ASSERT_EQ(program.prepare("k"), "");
        for (const uint32_t p : {1U, 2U, 3U, 75U}) {
            std::vector<float> out(in.size());
            program.run({.global = {160, 1, 1}, .local = {32, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(p).add(threads));
            for (uint32_t i = 0; i < threads; ++i) {
                const size_t place = i % p, to = place + (i - place) * 2;
                const float b = in[i + threads] * (p != 1 ? 2.0F : 1.0F);
                EXPECT_EQ(out[to], in[i] + b) << p << ' ' << i;
                EXPECT_EQ(out[to + p], in[i] - b) << p << ' ' << i;
            }
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
