// Extensions of OpenCL C: what kernels compute with them, on every device.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>

namespace polder::test {
namespace {

constexpr cl_device_info cxx_for_opencl_version = 0x4230;
constexpr cl_device_info single_fp_atomic_capabilities = 0x4231;
constexpr cl_device_info double_fp_atomic_capabilities = 0x4232;
constexpr cl_device_info half_fp_atomic_capabilities = 0x4233;
constexpr cl_device_info kernel_clock_capabilities = 0x1076;

class KernelExtensions : public ContextTest {
protected:
    template <class T>
    T device_value(cl_device_id device, cl_device_info name) {
        T value{};
        EXPECT_EQ(clGetDeviceInfo(device, name, sizeof value, &value, nullptr), CL_SUCCESS) << std::hex << name;
        return value;
    }

    // Extensions of this kind are made for code on the host; GPUs need not have them.
    [[nodiscard]] bool all_have(const std::string& extension) {
        return std::ranges::all_of(devices, [&](cl_device_id device) {
            std::string names(8192, '\0');
            EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, names.size(), names.data(), nullptr), CL_SUCCESS);
            return (" " + names).find(" " + extension) != std::string::npos;
        });
    }

    // What the kernel `k` of the program leaves in `words`, its only argument.
    template <class T>
    std::vector<T> run(cl_program program, std::vector<T> words, size_t global, size_t local, cl_device_id device) {
        OwnedQueue on = make_queue(device);
        OwnedKernel kernel = make_kernel(program, "k");
        OwnedMem buffer = make_buffer(words.size() * sizeof(T), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words.data());
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        return read<T>(buffer, words.size(), on);
    }

    cl_int build_status(const char* source, const char* options) {
        OwnedProgram program = from_source(source);
        return clBuildProgram(program, 0, nullptr, options, nullptr, nullptr);
    }
};

TEST_F(KernelExtensions, ThatAreReported_CanBeEnabledWhereWarningsAreErrors) {
    for (const cl_device_id device : devices) {
        std::string names(8192, '\0');
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, names.size(), names.data(), nullptr), CL_SUCCESS);
        std::istringstream words(names.substr(0, names.find('\0')));
        std::string source;
        for (std::string name; words >> name;)
            source += "#pragma OPENCL EXTENSION " + name + " : enable\n";
        for (const char* standard : {"", "-cl-std=CL1.0 ", "-cl-std=CL3.1 ", "-cl-std=CLC++2021 "}) {
            OwnedProgram program = from_source(source + "kernel void k() {}\n");
            EXPECT_EQ(
                clBuildProgram(program, 1, &device, (std::string(standard) + "-Werror").c_str(), nullptr, nullptr),
                CL_SUCCESS)
                << standard << build_log(program);
        }
    }
}

TEST_F(KernelExtensions, ThatNoDeviceHas_AreErrorsWhereWarningsAre) {
    OwnedProgram program = from_source("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                                       "#pragma OPENCL EXTENSION made_up_extension : enable\nkernel void k() {}\n");
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    OwnedProgram strict = from_source("#pragma OPENCL EXTENSION made_up_extension : enable\nkernel void k() {}\n");
    EXPECT_EQ(clBuildProgram(strict, 0, nullptr, "-Werror", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    EXPECT_NE(build_log(strict).find("made_up_extension"), std::string::npos) << build_log(strict);
}

// 40 work-items with the values 1, 2, … 40, and 17 of a smaller last group with 41 and on.
constexpr size_t item_count = 57, group_size = 40;

template <class T, class Combine>
void expect_collective(const std::vector<T>& found, size_t place, size_t places, T identity, Combine combine) {
    for (size_t begin = 0; begin < item_count; begin += group_size) {
        const size_t end = std::min(begin + group_size, item_count);
        T whole = identity;
        for (size_t i = begin; i < end; ++i)
            whole = combine(whole, static_cast<T>(i + 1));
        T so_far = identity;
        for (size_t i = begin; i < end; ++i) {
            EXPECT_EQ(found[i * places + place], whole) << "reduce, item " << i;
            EXPECT_EQ(found[i * places + place + 1], so_far) << "scan_exclusive, item " << i;
            so_far = combine(so_far, static_cast<T>(i + 1));
            EXPECT_EQ(found[i * places + place + 2], so_far) << "scan_inclusive, item " << i;
        }
    }
}

TEST_F(KernelExtensions, WorkGroupUniformArithmetic_ReducesAndScans) {
    const std::string source = R"(
        #ifndef cl_khr_work_group_uniform_arithmetic
        #error "no macro"
        #endif
        #define ALL(NAME, VALUE) *o++ = work_group_reduce_##NAME(VALUE); *o++ = work_group_scan_exclusive_##NAME(VALUE); \
                                 *o++ = work_group_scan_inclusive_##NAME(VALUE);
        kernel void k(global T* out) {
            const size_t i = get_global_id(0);
            const T x = (T)(i + 1);
            global T* o = out + i * 12;
            ALL(mul, x) ALL(and, x) ALL(or, x) ALL(xor, x)
        })";
    const auto check = [&](auto one, const char* options) {
        using T = decltype(one);
        OwnedProgram program = build(source, options);
        for (const cl_device_id device : devices) {
            const auto found = run<T>(program, std::vector<T>(item_count * 12), item_count, group_size, device);
            // Products wrap around, as unsigned numbers do.
            using U = std::make_unsigned_t<T>;
            expect_collective<T>(found, 0, 12, 1, [](T a, T b) { return static_cast<T>(U(a) * U(b)); });
            expect_collective<T>(found, 3, 12, static_cast<T>(~T{0}), [](T a, T b) { return static_cast<T>(a & b); });
            expect_collective<T>(found, 6, 12, 0, [](T a, T b) { return static_cast<T>(a | b); });
            expect_collective<T>(found, 9, 12, 0, [](T a, T b) { return static_cast<T>(a ^ b); });
        }
    };
    check(cl_int{}, "-cl-std=CL3.0 -DT=int");
    check(cl_uint{}, "-cl-std=CL3.0 -DT=uint");
    check(cl_long{}, "-cl-std=CL3.0 -DT=long");
    check(cl_ulong{}, "-cl-std=CL3.0 -DT=ulong");
}

// 16 values are combined at once, the others one by one.
TEST_F(KernelExtensions, WorkGroupReductions_CombineAllValuesOfGroupsOfAnySize) {
    OwnedProgram program = build(R"(
        kernel void k(global float* out) {
            const size_t i = get_global_id(0);
            const float x = (i * 7 % 64) - 20.0f;
            out[i * 3] = work_group_reduce_add(x);
            out[i * 3 + 1] = work_group_reduce_min(x);
            out[i * 3 + 2] = work_group_reduce_max(x);
        })",
                                 "-cl-std=CL3.0");
    for (const cl_device_id device : devices)
        for (const size_t size : {1, 2, 15, 16, 17, 31, 32, 40, 64, 100}) {
            const auto found = run<float>(program, std::vector<float>(size * 3), size, size, device);
            float sum = 0, least = 100, most = -100;
            for (size_t i = 0; i < size; ++i) {
                const float x = static_cast<float>(i * 7 % 64) - 20;
                sum += x;
                least = std::min(least, x);
                most = std::max(most, x);
            }
            for (size_t i = 0; i < size; ++i) {
                EXPECT_EQ(found[i * 3], sum) << size;
                EXPECT_EQ(found[i * 3 + 1], least) << size;
                EXPECT_EQ(found[i * 3 + 2], most) << size;
            }
        }
}

TEST_F(KernelExtensions, WorkGroupUniformArithmetic_MultipliesFloatsAndCombinesPredicates) {
    OwnedProgram program = build(R"(
        kernel void k(global float* out) {
            const size_t i = get_global_id(0);
            const float x = i % 2 ? 2.0f : 0.5f;
            const double y = i % 2 ? 0.25 : 4.0;
            global float* o = out + i * 10;
            o[0] = work_group_reduce_mul(x); o[1] = work_group_scan_exclusive_mul(x); o[2] = work_group_scan_inclusive_mul(x);
            o[3] = (float)work_group_scan_inclusive_mul(y);
            const int p = i == 3 ? 0 : 1 << (i % 8);
            o[4] = work_group_reduce_logical_and(p) ? 1 : 0;
            o[5] = work_group_reduce_logical_or(p) ? 1 : 0;
            o[6] = work_group_reduce_logical_xor(p) ? 1 : 0;
            o[7] = work_group_scan_exclusive_logical_and(p) ? 1 : 0;
            o[8] = work_group_scan_inclusive_logical_and(p) ? 1 : 0;
            o[9] = work_group_scan_exclusive_logical_xor(p) ? 1 : 0;
        })",
                                 "-cl-std=CL3.0");
    for (const cl_device_id device : devices) {
        const auto found = run<cl_float>(program, std::vector<cl_float>(160), 16, 16, device);
        for (size_t i = 0; i < 16; ++i) {
            const cl_float odd = i % 2 ? 1.0f : 0.0f;
            const std::vector<cl_float> expected = {1,
                                                    i % 2 ? 0.5f : 1.0f,
                                                    i % 2 ? 1.0f : 0.5f,
                                                    i % 2 ? 1.0f : 4.0f,
                                                    0,
                                                    1,
                                                    1,  // 15 of 16
                                                    i <= 3 ? 1.0f : 0.0f,
                                                    i < 3 ? 1.0f : 0.0f,
                                                    i <= 3 ? odd : 1 - odd};
            EXPECT_EQ(std::vector<cl_float>(found.begin() + static_cast<ptrdiff_t>(i * 10),
                                            found.begin() + static_cast<ptrdiff_t>(i * 10 + 10)),
                      expected)
                << "item " << i;
        }
    }
}

TEST_F(KernelExtensions, ExtendedAsyncCopies_CopyLinesAndPlanes) {
    // 3 planes of 4 lines of 5 elements of 3 bytes come from pitches of 7 and 40 elements, and go to others.
    OwnedProgram program = build(R"(
        #if !defined(cl_khr_extended_async_copies) || !defined(cl_khr_async_work_group_copy_fence)
        #error "no macro"
        #endif
        kernel void k(global uchar* bytes) {
            local uchar box[1024];
            for (uint i = get_local_id(0); i < 1024; i += get_local_size(0)) box[i] = 0xee;
            barrier(CLK_LOCAL_MEM_FENCE);
            event_t e = async_work_group_copy_3D3D(box, 2, bytes, 1, 3, 5, 4, 3, 7, 40, 6, 30, 0);
            async_work_group_copy_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            e = async_work_group_copy_3D3D(bytes + 1024, 0, box, 2, 3, 5, 4, 3, 6, 30, 5, 20, e);
            e = async_work_group_copy_2D2D(bytes + 2048, 1, box, 2, 3, 5, 4, 6, 8, e);
            wait_group_events(1, &e);
            event_t f = async_work_group_copy_2D2D(box, 0, bytes + 2048, 1, 3, 5, 4, 8, 5, 0);
            async_work_group_copy_fence(CLK_LOCAL_MEM_FENCE);
            f = async_work_group_copy(bytes + 3072, box, 60, f);
            wait_group_events(1, &f);
        })",
                                 "-cl-std=CL3.0");
    for (const cl_device_id device : devices) {
        std::vector<cl_uchar> bytes(4096, 0xaa);
        for (size_t i = 0; i < 1024; ++i)
            bytes[i] = static_cast<cl_uchar>(i * 7 + i / 256);
        const std::vector<cl_uchar> before = bytes;
        bytes = run<cl_uchar>(program, bytes, 8, 8, device);
        std::vector<cl_uchar> expected = before;
        for (size_t plane = 0; plane < 3; ++plane)
            for (size_t line = 0; line < 4; ++line)
                for (size_t byte = 0; byte < 15; ++byte) {
                    const cl_uchar value = before[(1 + plane * 40 + line * 7) * 3 + byte];
                    expected[1024 + (plane * 20 + line * 5) * 3 + byte] = value;
                    if (plane == 0)
                        expected[2048 + (1 + line * 8) * 3 + byte] = expected[3072 + line * 15 + byte] = value;
                }
        EXPECT_EQ(bytes, expected);
    }
}

// Many groups, in local and global memory, in every form.
TEST_F(KernelExtensions, FloatAtomics_AddSubtractAndFindExtrema) {
    ASSERT_TRUE(all_have("cl_ext_float_atomics"));
    const std::string source = R"(
        #if !defined(cl_ext_float_atomics) || !defined(ADD) || !defined(LOCAL_ADD) || !defined(EXTREMA) || !defined(LOCAL_EXTREMA)
        #error "no macro"
        #endif
        kernel void k(global T* out) {
            volatile global A* g = (volatile global A*)out;
            local A box[4];
            const T x = (T)get_global_id(0);
            if (get_local_id(0) == 0) { atomic_init(box, (T)0); atomic_init(box + 1, (T)100000); atomic_init(box + 2, (T)-1); }
            barrier(CLK_LOCAL_MEM_FENCE);
            atomic_fetch_add(g, x);
            atomic_fetch_sub_explicit(g + 1, x, memory_order_relaxed);
            atomic_fetch_min_explicit(g + 2, x, memory_order_acq_rel, memory_scope_device);
            atomic_fetch_max(g + 3, x);
            volatile A* any = g + 4;  // generic
            atomic_fetch_add_explicit(any, (T)0.5, memory_order_seq_cst);
            atomic_fetch_add(box, (T)1);
            atomic_fetch_min(box + 1, x);
            atomic_fetch_max_explicit(box + 2, x, memory_order_relaxed, memory_scope_work_group);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (get_local_id(0) == 0) {
                const size_t group = get_group_id(0);
                out[5 + group * 3] = atomic_load(box);
                out[6 + group * 3] = atomic_load(box + 1);
                out[7 + group * 3] = atomic_load(box + 2);
            }
        })";
    const auto check = [&](auto zero, const char* options, cl_device_info capabilities) {
        using T = decltype(zero);
        OwnedProgram program = build(source, options);
        for (const cl_device_id device : devices) {
            EXPECT_EQ(device_value<cl_bitfield>(device, capabilities), cl_bitfield{0x70007});
            std::vector<T> words(5 + 3 * 8);
            words[2] = 1e6;
            const std::vector<T> found = run<T>(program, words, 512, 64, device);
            EXPECT_EQ(found[0], T{511 * 256});
            EXPECT_EQ(found[1], T{-511 * 256});
            EXPECT_EQ(found[2], T{0});
            EXPECT_EQ(found[3], T{511});
            EXPECT_EQ(found[4], T{256});
            for (size_t group = 0; group < 8; ++group) {
                EXPECT_EQ(found[5 + group * 3], T{64});
                EXPECT_EQ(found[6 + group * 3], static_cast<T>(group * 64));
                EXPECT_EQ(found[7 + group * 3], static_cast<T>(group * 64 + 63));
            }
        }
    };
    check(cl_float{},
          "-cl-std=CL3.0 -DT=float -DA=atomic_float -DADD=__opencl_c_ext_fp32_global_atomic_add "
          "-DLOCAL_ADD=__opencl_c_ext_fp32_local_atomic_add -DEXTREMA=__opencl_c_ext_fp32_global_atomic_min_max "
          "-DLOCAL_EXTREMA=__opencl_c_ext_fp32_local_atomic_min_max",
          single_fp_atomic_capabilities);
    check(cl_double{},
          "-cl-std=CL3.0 -DT=double -DA=atomic_double -DADD=__opencl_c_ext_fp64_global_atomic_add "
          "-DLOCAL_ADD=__opencl_c_ext_fp64_local_atomic_add -DEXTREMA=__opencl_c_ext_fp64_global_atomic_min_max "
          "-DLOCAL_EXTREMA=__opencl_c_ext_fp64_local_atomic_min_max",
          double_fp_atomic_capabilities);
}

// Devices that have subnormal numbers add them, too, also where they meet larger ones.
TEST_F(KernelExtensions, FloatAtomics_KeepSubnormalNumbers) {
    const float least = std::numeric_limits<float>::denorm_min();
    const float smallest = std::numeric_limits<float>::min();
    struct Case {
        float before, operand;
    };
    const std::vector<Case> cases = {{0, least},
                                     {least, 0},
                                     {least, least},
                                     {least, -least},
                                     {-0.0F, 3 * least},
                                     {smallest, -least},
                                     {smallest, 0x1p-127F - smallest},
                                     {3 * least, smallest},
                                     {0x1p-103F, -0x1.000002p-103F},
                                     {-0x1.fffffep-103F, 0x1p-102F},
                                     {least - smallest, 0x1p-102F},
                                     {least - smallest, 0x1p-101F},
                                     {least, 1},
                                     {0x1.000002p-101F, -0x1p-101F},
                                     {smallest, -0.0F}};
    OwnedProgram program = build(R"(
        kernel void k(global float* data) {
            const size_t i = get_global_id(0), count = get_global_size(0);
            volatile global atomic_float* sums = (volatile global atomic_float*)data;
            volatile global atomic_float* differences = (volatile global atomic_float*)(data + count);
            const float operand = data[2 * count + i];
            atomic_fetch_add_explicit(sums + i, operand, memory_order_relaxed);
            data[3 * count + i] = atomic_fetch_sub(differences + i, -operand);
        })",
                                 "-cl-std=CL3.0");
    const size_t count = cases.size();
    for (const cl_device_id device : devices) {
        if (!(device_value<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM))
            continue;
        std::vector<float> words(4 * count);
        for (size_t i = 0; i < count; ++i) {
            words[i] = words[count + i] = cases[i].before;
            words[2 * count + i] = cases[i].operand;
        }
        const std::vector<float> found = run<float>(program, words, count, 1, device);
        for (size_t i = 0; i < count; ++i) {
            const float sum = cases[i].before + cases[i].operand;
            EXPECT_EQ(found[i], sum) << cases[i].before << " + " << cases[i].operand;
            EXPECT_EQ(found[count + i], sum) << cases[i].before << " - -" << cases[i].operand;
            EXPECT_EQ(found[3 * count + i], cases[i].before);
        }
    }
}

// Two of them share a word. More results: tests/unit/math/atomics_test.cpp.
TEST_F(KernelExtensions, AtomicsOfHalves_ChangeNothingBesideThem) {
    ASSERT_TRUE(all_have("cl_ext_float_atomics"));
    OwnedProgram program = build(R"(
        #if __opencl_c_ext_fp16_global_atomic_add != 1 || __opencl_c_ext_fp16_local_atomic_add != 1 || \
            __opencl_c_ext_fp16_global_atomic_min_max != 1 || __opencl_c_ext_fp16_local_atomic_min_max != 1 || \
            __opencl_c_ext_fp16_global_atomic_load_store != 1 || __opencl_c_ext_fp16_local_atomic_load_store != 1
        #error "no macro"
        #endif
        #pragma OPENCL EXTENSION cl_khr_fp16 : enable
        #define UPDATE(o) \
            atomic_fetch_add(o, x); atomic_fetch_sub_explicit(o + 1, x, memory_order_relaxed); \
            atomic_fetch_min(o + 2, x); atomic_fetch_max_explicit(o + 3, x, memory_order_acq_rel, memory_scope_device); \
            atomic_store(o + 4, 3.0h); atomic_exchange(o + 6, atomic_load(o + 4));
        kernel void k(global half* out) {
            volatile global atomic_half* g = (volatile global atomic_half*)out;
            local atomic_half box[8];
            const size_t item = get_local_id(0);
            if (item < 8) atomic_store(box + item, out[item]);
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            const half x = (half)item;
            UPDATE(g)
            UPDATE(box)
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < 8) atomic_store(g + 8 + item, atomic_load(box + item));
        })",
                                 "-cl-std=CL3.0");
    // 1000, 1.5 and what 32 work-items make of the others.
    constexpr cl_ushort thousand = 0x63d0, other = 0x3e00, sum = 0x5fc0, difference = 0xdfc0, largest = 0x4fc0,
                        three = 0x4200;
    std::vector<cl_ushort> words(16);
    words[2] = thousand;
    words[5] = words[7] = other;
    for (const cl_device_id device : devices) {
        EXPECT_EQ(device_value<cl_bitfield>(device, half_fp_atomic_capabilities), cl_bitfield{0x70007});
        std::vector<cl_ushort> expected = {sum, difference, 0, largest, three, other, three, other};
        expected.insert(expected.end(), expected.begin(), expected.begin() + 8);
        EXPECT_EQ(run<cl_ushort>(program, words, 32, 32, device), expected);
    }
}

TEST_F(KernelExtensions, KernelClock_NeverGoesBack) {
    ASSERT_TRUE(all_have("cl_khr_kernel_clock"));
    OwnedProgram program = build(R"(
        #if __opencl_c_kernel_clock_scope_device != 1 || __opencl_c_kernel_clock_scope_work_group != 1 || \
            __opencl_c_kernel_clock_scope_sub_group != 1 || !defined(cl_khr_kernel_clock)
        #error "no macro"
        #endif
        #define WORK(from) for (int i = 0; i < 1000; ++i) x = x * 6364136223846793005ul + from;
        kernel void k(global ulong* out) {
            global ulong* o = out + 8 * get_global_id(0);
            ulong x = get_global_id(0);
            o[0] = clock_read_device(); WORK(o[0])
            o[1] = clock_read_device(); WORK(o[1])
            o[2] = clock_read_work_group(); WORK(o[2])
            o[3] = clock_read_work_group(); WORK(o[3])
            o[4] = clock_read_sub_group(); WORK(o[4])
            o[5] = clock_read_sub_group(); WORK(o[5])
            uint2 parts = clock_read_hilo_device();
            o[6] = (ulong)parts.hi << 32 | parts.lo;
            o[7] = x;
        })",
                                 "-cl-std=CL3.0");
    for (const cl_device_id device : devices) {
        EXPECT_EQ(device_value<cl_bitfield>(device, kernel_clock_capabilities), cl_bitfield{7});
        const auto found = run<cl_ulong>(program, std::vector<cl_ulong>(64 * 8), 64, 16, device);
        for (size_t i = 0; i < 64; ++i)
            for (const size_t before : {0u, 2u, 4u})
                EXPECT_LE(found[i * 8 + before], found[i * 8 + before + 1]) << "item " << i << ", clock " << before;
        for (size_t i = 0; i < 64; ++i)
            EXPECT_LT(found[i * 8], found[i * 8 + 6]) << "item " << i;
    }
}

TEST_F(KernelExtensions, CxxForOpenCL_BuildsAndRuns) {
    const char* source = R"(
        #ifndef __OPENCL_CPP_VERSION__
        #error "not C++"
        #endif
        namespace shapes {
        template <class T> struct Pair {
            T first, second;
            constexpr Pair(T a, T b) : first(a), second(b) {}
            constexpr T sum() const { return first + second; }
        };
        template <class T> T twice(T x) { return x + x; }
        float twice(float x) { return 2.0f * x; }
        }
        constexpr int bias = shapes::Pair<int>(3, 4).sum();
        __kernel void k(__global int* out) {
            const auto i = static_cast<int>(get_global_id(0));
            auto add = [=](int more) { return shapes::twice(i) + more; };
            out[i] = add(bias);
        })";
    for (const char* standard : {"-cl-std=CLC++", "-cl-std=CLC++1.0", "-cl-std=CLC++2021"}) {
        OwnedProgram program = build(source, standard);
        for (const cl_device_id device : devices) {
            const auto found = run<cl_int>(program, std::vector<cl_int>(32), 32, 8, device);
            for (cl_int i = 0; i < 32; ++i)
                EXPECT_EQ(found[static_cast<size_t>(i)], 2 * i + 7) << standard;
        }
    }
    for (const cl_device_id device : devices)
        EXPECT_EQ(device_value<cl_version>(device, cxx_for_opencl_version), cl_version{CL_MAKE_VERSION(1, 0, 0)});
    build("#if __OPENCL_CPP_VERSION__ != 100\n#error\n#endif\n", "-cl-std=CLC++");
    build("#if __OPENCL_CPP_VERSION__ != 202100\n#error\n#endif\n", "-cl-std=CLC++2021");
    EXPECT_EQ(build_status("kernel void k() {}", "-cl-std=CLC++9"), CL_INVALID_BUILD_OPTIONS);
    EXPECT_EQ(build_status("namespace { ", "-cl-std=CLC++"), CL_BUILD_PROGRAM_FAILURE);
    EXPECT_EQ(build_status("namespace n {}", "-cl-std=CL3.0"), CL_BUILD_PROGRAM_FAILURE);
}

} // namespace
} // namespace polder::test
