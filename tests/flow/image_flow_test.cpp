// Images that several devices use: what they contain, and exactly how many bytes of which rows moved.
#include "../api/support/images.h"
#include "support/flow.h"

namespace polder::test {
namespace {

constexpr size_t host = 0, first = 1, second = 2;  // devices
constexpr size_t width = 64, height = 32, element = 4, row = width * element, bytes = row * height;

class ImageFlow : public FlowTest {
protected:
    void SetUp() override {
        FlowTest::SetUp();
        program = build(R"(
            kernel void invert(read_write image2d_t image) {
                int2 at = (int2)(get_global_id(0) % 64, get_global_id(0) / 64);
                write_imageui(image, at, 255 - read_imageui(image, at));
            }
            kernel void show(read_only image2d_t image, global uint4* to, int x, int y) {
                to[0] = read_imageui(image, (int2)(x, y));
            }
            kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }
        )",
                        "-cl-std=CL3.0");
    }
    OwnedMem make_image(cl_mem buffer = nullptr) {
        const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
        cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {width, height, 1});
        description.buffer = buffer;
        cl_int error = CL_INVALID_VALUE;
        const cl_mem made = clCreateImage(context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    static std::vector<uint8_t> pattern() {
        std::vector<uint8_t> made(bytes);
        for (size_t i = 0; i < bytes; ++i)
            made[i] = static_cast<uint8_t>(i * 7 + i / 256);
        return made;
    }
    void write_part(size_t device, cl_mem image, const Triple& origin, const Triple& region, const uint8_t* from) {
        EXPECT_EQ(clEnqueueWriteImage(queues[device], image, CL_TRUE, origin.data(), region.data(), 0, 0, from, 0,
                                      nullptr, nullptr),
                  CL_SUCCESS);
    }
    std::vector<uint8_t> read_part(size_t device, cl_mem image, const Triple& origin, const Triple& region) {
        std::vector<uint8_t> to(region[0] * region[1] * element);
        EXPECT_EQ(clEnqueueReadImage(queues[device], image, CL_TRUE, origin.data(), region.data(), 0, 0, to.data(), 0,
                                     nullptr, nullptr),
                  CL_SUCCESS);
        return to;
    }
};

TEST_F(ImageFlow, KernelsInTurnsMoveTheImageOnceEachTurn) {
    const OwnedMem image = make_image();
    std::vector<uint8_t> expected = pattern();
    write_part(first, image, {0, 0, 0}, {width, height, 1}, expected.data());
    EXPECT_EQ(moved(), bytes);
    OwnedEvent last;
    for (size_t turn = 0; turn < 5; ++turn) {
        last = run(turn % 2 ? first : second, "invert", width * height,
                   last ? std::vector<cl_event>{last} : std::vector<cl_event>{}, mem(image));
        EXPECT_EQ(moved(), bytes);
    }
    for (uint8_t& byte : expected)
        byte = static_cast<uint8_t>(255 - byte);
    EXPECT_EQ(read_part(second, image, {0, 0, 0}, {width, height, 1}), expected);
}

TEST_F(ImageFlow, WritingAPartMovesItsRowsAlone) {
    const OwnedMem image = make_image();
    std::vector<uint8_t> expected = pattern();
    write_part(first, image, {0, 0, 0}, {width, height, 1}, expected.data());
    const OwnedMem sum = make_buffer(16);
    run(second, "show", 1, {}, mem(image), mem(sum), cl_int{0}, cl_int{0});
    EXPECT_EQ(moved(), 2 * bytes);
    // 10 x 3 elements change on the first device; the second one has all others already.
    const std::vector<uint8_t> part(10 * 3 * element, 99);
    write_part(first, image, {5, 7, 0}, {10, 3, 1}, part.data());
    EXPECT_EQ(moved(), part.size());
    run(second, "show", 1, {}, mem(image), mem(sum), cl_int{6}, cl_int{8});
    EXPECT_EQ(moved(), part.size());
    EXPECT_EQ(read<cl_uint>(sum, 4, queues[second]), std::vector<cl_uint>(4, 99));
    for (size_t y = 0; y < 3; ++y)
        std::fill_n(expected.begin() + static_cast<ptrdiff_t>((7 + y) * row + 5 * element), 10 * element, uint8_t{99});
    moved();
    EXPECT_EQ(read_part(second, image, {0, 0, 0}, {width, height, 1}), expected);
    EXPECT_EQ(moved(), bytes);
}

TEST_F(ImageFlow, FillsMoveNothing) {
    const OwnedMem image = make_image();
    const cl_uint color[4] = {1, 2, 3, 4};
    const size_t origin[3] = {3, 2, 0};
    const size_t region[3] = {8, 4, 1};
    ASSERT_EQ(clEnqueueFillImage(queues[first], image, color, origin, region, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), 0u);
    const std::vector<uint8_t> found = read_part(first, image, {3, 2, 0}, {8, 4, 1});
    EXPECT_EQ(moved(), found.size());
    for (size_t i = 0; i < found.size(); ++i)
        ASSERT_EQ(found[i], i % 4 + 1);
}

TEST_F(ImageFlow, AnImageOfABufferIsTheSameBytes) {
    const OwnedMem buffer = make_buffer(bytes);
    const OwnedMem image = make_image(buffer);
    write(buffer, std::vector<cl_int>(width * height, 0), queues[first]);
    moved();
    run(first, "add", width * height, {}, mem(buffer), cl_int{0x01010101});
    const OwnedMem sum = make_buffer(16);
    run(first, "show", 1, {}, mem(image), mem(sum), cl_int{63}, cl_int{31});
    EXPECT_EQ(moved(), 0u);
    EXPECT_EQ(read<cl_uint>(sum, 4, queues[first]), std::vector<cl_uint>(4, 1));
    moved();
    run(host, "invert", width * height, {}, mem(image));
    EXPECT_EQ(moved(), bytes);
    EXPECT_EQ(read<cl_int>(buffer, 1, queues[host])[0], static_cast<cl_int>(0xfefefefe));
}

TEST_F(ImageFlow, MappingAPartMovesItsRowsAlone) {
    const OwnedMem image = make_image();
    const std::vector<uint8_t> expected = pattern();
    write_part(first, image, {0, 0, 0}, {width, height, 1}, expected.data());
    moved();
    const size_t origin[3] = {2, 3, 0};
    const size_t region[3] = {5, 6, 1};
    size_t pitch = 0;
    cl_int error = CL_INVALID_VALUE;
    auto* const mapped = static_cast<uint8_t*>(clEnqueueMapImage(queues[first], image, CL_TRUE, CL_MAP_READ, origin,
                                                                 region, &pitch, nullptr, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(moved(), 5 * 6 * element);
    EXPECT_EQ(std::memcmp(mapped + pitch, expected.data() + 4 * row + 2 * element, 5 * element), 0);
    EXPECT_EQ(clEnqueueUnmapMemObject(queues[first], image, mapped, 0, nullptr, nullptr), CL_SUCCESS);
}

} // namespace
} // namespace polder::test
