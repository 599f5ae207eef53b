// Pipes: creation, queries, and what kernels on every device pass through them.
#include "support/fixture.h"

#include <algorithm>
#include <numeric>

namespace polder::test {
namespace {

class Pipes : public ContextTest {
protected:
    OwnedMem make_pipe(cl_uint packet_bytes, cl_uint packets) {
        cl_int error = CL_INVALID_VALUE;
        OwnedMem pipe = clCreatePipe(context, 0, packet_bytes, packets, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return pipe;
    }
    cl_int creation_error(cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets,
                          const cl_pipe_properties* properties = nullptr) {
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clCreatePipe(context, flags, packet_bytes, packets, properties, &error), nullptr);
        return error;
    }
    bool all_have_sub_groups_of(size_t items) {
        constexpr cl_device_info sub_group_sizes = 0x4108;  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
        return std::ranges::all_of(devices, [&](cl_device_id device) {
            size_t sizes[16] = {}, bytes = 0;
            EXPECT_EQ(clGetDeviceInfo(device, sub_group_sizes, sizeof sizes, sizes, &bytes), CL_SUCCESS);
            return std::ranges::find(sizes, items) != std::end(sizes);
        });
    }
    // `name`(pipe, out) of `program`; returns `count` words of out, which are 0 before.
    std::vector<cl_uint> run(cl_program program, const char* name, OwnedMem& pipe, size_t items, size_t group,
                             size_t count, cl_device_id device) {
        OwnedQueue on = make_queue(device);
        OwnedKernel kernel = make_kernel(program, name);
        std::vector<cl_uint> words(count, 0);
        OwnedMem out = make_buffer(count * sizeof(cl_uint), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words.data());
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), pipe.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, &group, 0, nullptr, nullptr), CL_SUCCESS);
        return read<cl_uint>(out, count, on);
    }
};

TEST_F(Pipes, ReportWhatTheyWereCreatedWith) {
    OwnedMem pipe = make_pipe(12, 100);
    const auto number = [&](cl_pipe_info name) {
        cl_uint value = 0;
        EXPECT_EQ(clGetPipeInfo(pipe, name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    };
    EXPECT_EQ(number(CL_PIPE_PACKET_SIZE), 12U);
    EXPECT_EQ(number(CL_PIPE_MAX_PACKETS), 100U);
    size_t size = 1;
    EXPECT_EQ(clGetPipeInfo(pipe, CL_PIPE_PROPERTIES, 0, nullptr, &size), CL_SUCCESS);
    EXPECT_EQ(size, 0U);
    const cl_pipe_properties no_entries[] = {0};
    cl_int error = CL_INVALID_VALUE;
    const OwnedMem with_list = clCreatePipe(context, CL_MEM_HOST_NO_ACCESS, 12, 100, no_entries, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    cl_pipe_properties list[] = {7};
    EXPECT_EQ(clGetPipeInfo(with_list, CL_PIPE_PROPERTIES, sizeof list, list, &size), CL_SUCCESS);
    EXPECT_EQ(size, sizeof list);
    EXPECT_EQ(list[0], 0);
    cl_uint word = 0;
    EXPECT_EQ(clGetPipeInfo(pipe, CL_PIPE_MAX_PACKETS, 3, &word, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetPipeInfo(pipe, CL_MEM_SIZE, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetPipeInfo(nullptr, CL_PIPE_MAX_PACKETS, sizeof word, &word, nullptr), CL_INVALID_MEM_OBJECT);
    cl_mem_object_type type = 0;
    EXPECT_EQ(clGetMemObjectInfo(pipe, CL_MEM_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, cl_mem_object_type{CL_MEM_OBJECT_PIPE});
    OwnedMem buffer = make_buffer(64);
    EXPECT_EQ(clGetPipeInfo(buffer, CL_PIPE_PACKET_SIZE, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    for (const cl_device_id device : devices) {
        cl_bool is_there = CL_FALSE;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_PIPE_SUPPORT, sizeof is_there, &is_there, nullptr), CL_SUCCESS);
        EXPECT_EQ(is_there, cl_bool{CL_TRUE});
        cl_uint largest = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_PIPE_MAX_PACKET_SIZE, sizeof largest, &largest, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(creation_error(0, largest + 1, 1), CL_INVALID_PIPE_SIZE);
    }
}

TEST_F(Pipes, RefuseWhatTheyCannotBe) {
    EXPECT_EQ(creation_error(0, 0, 4), CL_INVALID_PIPE_SIZE);
    EXPECT_EQ(creation_error(0, 4, 0), CL_INVALID_PIPE_SIZE);
    EXPECT_EQ(creation_error(CL_MEM_READ_ONLY, 4, 4), CL_INVALID_VALUE);
    EXPECT_EQ(creation_error(CL_MEM_ALLOC_HOST_PTR, 4, 4), CL_INVALID_VALUE);
    const cl_pipe_properties properties[] = {1, 1, 0};
    EXPECT_EQ(creation_error(0, 4, 4, properties), CL_INVALID_VALUE);
    EXPECT_EQ(creation_error(0, 65536, 0xffffffff), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreatePipe(nullptr, 0, 4, 4, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
}

TEST_F(Pipes, AreNeitherBuffersNorImages) {
    cl_int error = CL_SUCCESS;
    OwnedMem pipe = make_pipe(4, 4), buffer = make_buffer(64);
    cl_uint word = 0;
    EXPECT_EQ(clEnqueueReadBuffer(queue, pipe, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, buffer, pipe, 0, 0, 4, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    const cl_buffer_region region{0, 4};
    EXPECT_EQ(clCreateSubBuffer(pipe, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_MEM_OBJECT);
    const cl_image_format format{CL_R, CL_UNSIGNED_INT8};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
    description.image_width = 4;
    description.mem_object = pipe;
    EXPECT_EQ(clCreateImage(context, 0, &format, &description, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_IMAGE_DESCRIPTOR);
    EXPECT_EQ(clGetImageInfo(pipe, CL_IMAGE_WIDTH, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
}

TEST_F(Pipes, AreCheckedAsArguments) {
    OwnedMem pipe = make_pipe(4, 4), buffer = make_buffer(64);
    OwnedProgram program = build("kernel void k(read_only pipe int p, global int* out) { read_pipe(p, out); }",
                                 "-cl-std=CL3.0 -cl-kernel-arg-info");
    OwnedKernel kernel = make_kernel(program, "k");
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clSetKernelArg(kernel, 0, 4, pipe.in()), CL_INVALID_ARG_SIZE);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), pipe.in()), CL_INVALID_MEM_OBJECT);
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext elsewhere = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    const OwnedMem other = clCreatePipe(elsewhere, 0, 4, 4, nullptr, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), other.in()), CL_INVALID_CONTEXT);
    cl_kernel_arg_type_qualifier qualifier = 0;
    EXPECT_EQ(clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifier, &qualifier, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(qualifier, cl_kernel_arg_type_qualifier{CL_KERNEL_ARG_TYPE_PIPE});
    // A pipe that is released before the launch.
    const cl_mem released = clCreatePipe(context, 0, 4, 4, nullptr, &error);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof released, &released), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    EXPECT_EQ(clReleaseMemObject(released), CL_SUCCESS);
    const size_t items = 1;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
              CL_INVALID_KERNEL_ARGS);
}

// Written on one device, read on the next: more packets are written than there is room for, and more are read than were written.
TEST_F(Pipes, PassEachPacketOnce) {
    for (const char* const options : {"-cl-std=CL2.0", "-cl-std=CL3.0", "-cl-std=CL3.0 -cl-opt-disable"}) {
        OwnedProgram program = build(R"(
            typedef struct { uint a, b, c; } Packet;
            kernel void fill(write_only pipe Packet p, global uint* out) {
                const uint i = get_global_id(0);
                const Packet packet = {i, i * 3, i ^ 77};
                out[i] = write_pipe(p, &packet) == 0;
            }
            kernel void drain(read_only pipe Packet p, global uint* out) {
                const uint i = get_global_id(0);
                Packet packet;
                if (read_pipe(p, &packet) == 0 && packet.b == packet.a * 3 && packet.c == (packet.a ^ 77))
                    out[i] = packet.a + 1;
            }
            kernel void count(read_only pipe Packet p, global uint* out) {
                out[0] = get_pipe_num_packets(p);
                out[1] = get_pipe_max_packets(p);
            })",
                                     options);
        constexpr size_t capacity = 100, items = 256;
        OwnedMem pipe = make_pipe(12, capacity);
        for (size_t round = 0; round < 3; ++round) {
            const cl_device_id writer = devices[round % devices.size()], reader = devices[(round + 1) % devices.size()];
            std::vector<cl_uint> written = run(program, "fill", pipe, items, 32, items, writer);
            EXPECT_EQ(std::accumulate(written.begin(), written.end(), 0U), capacity);
            EXPECT_EQ(run(program, "count", pipe, 1, 1, 2, reader), (std::vector<cl_uint>{capacity, capacity}));
            std::vector<cl_uint> found = run(program, "drain", pipe, items, 64, items, reader);
            std::vector<cl_uint> expected;
            for (cl_uint i = 0; i < items; ++i)
                if (written[i] != 0)
                    expected.push_back(i + 1);
            std::erase(found, 0U);
            std::ranges::sort(found);
            EXPECT_EQ(found, expected) << options;
        }
        EXPECT_EQ(run(program, "count", pipe, 1, 1, 2, devices[0]), (std::vector<cl_uint>{0, capacity}));
    }
}

// A reservation's packets are together and in order, whether an item, a group or a sub-group made it; what is not committed cannot be read.
TEST_F(Pipes, KeepReservationsTogether) {
    // The size of a warp, where a device has no other.
    const size_t width = all_have_sub_groups_of(8) ? 8 : 32;
    OwnedProgram program = build(R"(
        kernel void by_item(write_only pipe uint p, global uint* out) {
            const uint i = get_global_id(0);
            reserve_id_t id = reserve_write_pipe(p, 4);
            if (!is_valid_reserve_id(id))
                return;
            for (uint k = 0; k < 4; ++k) {
                const uint value = i * 4 + k;
                out[i] += write_pipe(p, id, 3 - k, &value) == 0;
            }
            const uint beyond = 0;
            out[i] += 10 * (write_pipe(p, id, 4, &beyond) == 0);
            commit_write_pipe(p, id);
        }
        kernel void by_group(write_only pipe uint p, global uint* out) {
            const uint i = get_global_id(0);
            reserve_id_t id = work_group_reserve_write_pipe(p, get_local_size(0));
            if (is_valid_reserve_id(id)) {
                out[i] = write_pipe(p, id, get_local_id(0), &i) == 0;
                work_group_commit_write_pipe(p, id);
            }
        }
        __attribute__((intel_reqd_sub_group_size(WIDTH)))
        kernel void by_sub_group(write_only pipe uint p, global uint* out) {
            const uint i = get_global_id(0);
            reserve_id_t id = sub_group_reserve_write_pipe(p, get_sub_group_size());
            if (is_valid_reserve_id(id)) {
                out[i] = write_pipe(p, id, get_sub_group_local_id(), &i) == 0;
                sub_group_commit_write_pipe(p, id);
            }
        }
        kernel void drain(read_only pipe uint p, global uint* out) {
            reserve_id_t id = work_group_reserve_read_pipe(p, get_local_size(0));
            if (is_valid_reserve_id(id)) {
                uint value = 0;
                if (read_pipe(p, id, get_local_id(0), &value) == 0)
                    out[get_global_id(0)] = value + 1;
                work_group_commit_read_pipe(p, id);
            }
        }
        kernel void leave(write_only pipe uint p, global uint* out) {
            out[0] = is_valid_reserve_id(reserve_write_pipe(p, 1000));
            out[1] = is_valid_reserve_id(reserve_write_pipe(p, 0));
            reserve_id_t first = reserve_write_pipe(p, 1), second = reserve_write_pipe(p, 1);
            const uint value = 7;
            write_pipe(p, second, 0, &value);
            commit_write_pipe(p, second);
            out[2] = get_pipe_num_packets(p);
            write_pipe(p, first, 0, &value);
            commit_write_pipe(p, first);
            out[3] = get_pipe_num_packets(p);
        })",
                                 width == 8 ? "-cl-std=CL3.0 -DWIDTH=8" : "-cl-std=CL3.0 -DWIDTH=32");
    constexpr size_t items = 64;
    for (const cl_device_id device : devices)
        for (const std::string name : {"by_item", "by_group", "by_sub_group"}) {
            const size_t group = name == "by_sub_group" ? 2 * width : 16;
            const size_t together = name == "by_item" ? 4 : name == "by_group" ? group : width;
            OwnedMem pipe = make_pipe(sizeof(cl_uint), items);
            const size_t writers = name == "by_item" ? items / 4 : items;
            const std::vector<cl_uint> written =
                run(program, name.c_str(), pipe, writers, std::min(writers, group), writers, device);
            EXPECT_EQ(written, std::vector<cl_uint>(writers, name == "by_item" ? 4 : 1)) << name;
            std::vector<cl_uint> found = run(program, "drain", pipe, items, items, items, device);
            for (size_t i = 0; i < items; ++i)
                if (i % together != 0) {
                    EXPECT_EQ(found[i], found[i - 1] + (name == "by_item" ? -1 : 1)) << name << " " << i;
                }
            std::ranges::sort(found);
            std::vector<cl_uint> all(items);
            std::iota(all.begin(), all.end(), 1);
            EXPECT_EQ(found, all) << name;
        }
    OwnedMem pipe = make_pipe(sizeof(cl_uint), 8);
    EXPECT_EQ(run(program, "leave", pipe, 1, 1, 4, devices[0]), (std::vector<cl_uint>{0, 0, 0, 2}));
}

// Groups on several threads write until the pipe is full, then read until it is empty.
TEST_F(Pipes, GiveEachPacketToOneOfManyReaders) {
    OwnedProgram program = build(R"(
        kernel void fill(write_only pipe uint p, global uint* out) {
            const uint i = get_global_id(0);
            out[i] = write_pipe(p, &i) == 0;
        }
        kernel void take(read_only pipe uint p, global uint* out) {
            uint value;
            while (read_pipe(p, &value) == 0)
                atomic_inc(out + value);
        })",
                                 "-cl-std=CL3.0");
    constexpr size_t items = 4096, capacity = 1000;
    for (const cl_device_id device : devices) {
        OwnedMem pipe = make_pipe(sizeof(cl_uint), capacity);
        const std::vector<cl_uint> written = run(program, "fill", pipe, items, 64, items, device);
        EXPECT_EQ(std::accumulate(written.begin(), written.end(), size_t{0}), capacity);
        EXPECT_EQ(run(program, "take", pipe, 512, 32, items, device), written);
    }
}

// The place of a pipe for one packet is written again only after it was read.
TEST_F(Pipes, MayHoldOnePacket) {
    OwnedProgram program = build(R"(
        kernel void write_two(write_only pipe uint p, global uint* out) {
            const uint first = 5, second = 6;
            out[0] = write_pipe(p, &first) == 0;
            out[1] = write_pipe(p, &second) == 0;
            out[2] = get_pipe_num_packets(p);
        }
        kernel void read_two(read_only pipe uint p, global uint* out) {
            uint value = 0;
            out[0] = read_pipe(p, &value) == 0;
            out[1] = value;
            out[2] = read_pipe(p, &value) == 0;
        })",
                                 "-cl-std=CL3.0");
    OwnedMem pipe = make_pipe(sizeof(cl_uint), 1);
    for (const cl_device_id device : devices) {
        EXPECT_EQ(run(program, "write_two", pipe, 1, 1, 3, device), (std::vector<cl_uint>{1, 0, 1}));
        EXPECT_EQ(run(program, "read_two", pipe, 1, 1, 3, device), (std::vector<cl_uint>{1, 5, 0}));
    }
}

// CLK_NULL_RESERVE_ID is no reservation.
TEST_F(Pipes, HaveANullReservation) {
    OwnedProgram program = build(R"(
        kernel void k(write_only pipe uint p, global uint* out) {
            reserve_id_t id = CLK_NULL_RESERVE_ID;
            out[0] = is_valid_reserve_id(id) + 5;
            if (out[1] == 0)
                id = reserve_write_pipe(p, 1);
            out[1] = is_valid_reserve_id(id);
            commit_write_pipe(p, id);
        })",
                                 "-cl-std=CL3.0");
    OwnedMem pipe = make_pipe(sizeof(cl_uint), 8);
    EXPECT_EQ(run(program, "k", pipe, 1, 1, 2, devices[0]), (std::vector<cl_uint>{5, 1}));
}

}  // namespace
}  // namespace polder::test
