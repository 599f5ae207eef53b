// OpenCV's transparent API: the same operations on the host's matrices and on OpenCL's, over images whose size is no multiple of a
// power of two, with equal results but for rounding. (opencv.sh checks that OpenCL was used.)
#include <cstdio>
#include <functional>
#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace {

using cv::InputArray;
using cv::OutputArray;

struct Operation {
    const char* name;
    double tolerance;  // of one element, in its own unit
    std::function<void(InputArray, InputArray, OutputArray)> run;
};

const std::vector<Operation> operations_on_bytes = {
    {"add", 0, [](InputArray a, InputArray b, OutputArray out) { cv::add(a, b, out); }},
    {"absdiff", 0, [](InputArray a, InputArray b, OutputArray out) { cv::absdiff(a, b, out); }},
    {"compare", 0, [](InputArray a, InputArray b, OutputArray out) { cv::compare(a, b, out, cv::CMP_GT); }},
    {"bitwise_xor", 0, [](InputArray a, InputArray b, OutputArray out) { cv::bitwise_xor(a, b, out); }},
    {"gray", 1, [](InputArray a, InputArray, OutputArray out) { cv::cvtColor(a, out, cv::COLOR_BGR2GRAY); }},
    {"HSV", 1, [](InputArray a, InputArray, OutputArray out) { cv::cvtColor(a, out, cv::COLOR_BGR2HSV); }},
    {"Lab", 1, [](InputArray a, InputArray, OutputArray out) { cv::cvtColor(a, out, cv::COLOR_BGR2Lab); }},
    {"GaussianBlur", 1, [](InputArray a, InputArray, OutputArray out) { cv::GaussianBlur(a, out, {7, 7}, 1.5); }},
    {"blur", 1, [](InputArray a, InputArray, OutputArray out) { cv::blur(a, out, {5, 5}); }},
    {"medianBlur", 0, [](InputArray a, InputArray, OutputArray out) { cv::medianBlur(a, out, 5); }},
    {"Sobel", 0, [](InputArray a, InputArray, OutputArray out) { cv::Sobel(a, out, CV_16S, 1, 0); }},
    {"Laplacian", 1e-3, [](InputArray a, InputArray, OutputArray out) { cv::Laplacian(a, out, CV_32F); }},
    {"erode", 0, [](InputArray a, InputArray, OutputArray out) { cv::erode(a, out, cv::Mat()); }},
    {"dilate", 0, [](InputArray a, InputArray, OutputArray out) { cv::dilate(a, out, cv::Mat()); }},
    {"threshold", 0,
     [](InputArray a, InputArray, OutputArray out) { cv::threshold(a, out, 100, 255, cv::THRESH_BINARY); }},
    {"resize, linear", 1, [](InputArray a, InputArray, OutputArray out) { cv::resize(a, out, {211, 97}); }},
    {"resize, area", 1,
     [](InputArray a, InputArray, OutputArray out) { cv::resize(a, out, {}, 0.5, 0.5, cv::INTER_AREA); }},
    {"warpAffine", 8,  // both round coordinates to a 32nd of a pixel, one after and one before adding: 256 / 32
     [](InputArray a, InputArray, OutputArray out) {
         cv::warpAffine(a, out, cv::Matx23f(0.9F, 0.1F, 5, -0.1F, 0.95F, 7), {333, 201});
     }},
    {"pyrDown", 1, [](InputArray a, InputArray, OutputArray out) { cv::pyrDown(a, out); }},
    {"flip", 0, [](InputArray a, InputArray, OutputArray out) { cv::flip(a, out, 1); }},
    {"transpose", 0, [](InputArray a, InputArray, OutputArray out) { cv::transpose(a, out); }},
};

const std::vector<Operation> operations_on_floats = {
    {"multiply", 1e-5, [](InputArray a, InputArray b, OutputArray out) { cv::multiply(a, b, out); }},
    {"exp", 1e-5, [](InputArray a, InputArray, OutputArray out) { cv::exp(a, out); }},
    {"log", 1e-5, [](InputArray a, InputArray, OutputArray out) { cv::log(a, out); }},
    {"pow", 1e-5, [](InputArray a, InputArray, OutputArray out) { cv::pow(a, 2.3, out); }},
    {"sqrt", 1e-5, [](InputArray a, InputArray, OutputArray out) { cv::sqrt(a, out); }},
    {"magnitude", 1e-5, [](InputArray a, InputArray b, OutputArray out) { cv::magnitude(a, b, out); }},
    {"phase", 1e-3, [](InputArray a, InputArray b, OutputArray out) { cv::phase(a, b, out); }},
    {"dft", 0.05, [](InputArray a, InputArray, OutputArray out) { cv::dft(a, out, cv::DFT_COMPLEX_OUTPUT); }},
    {"reduce", 1e-2, [](InputArray a, InputArray, OutputArray out) { cv::reduce(a, out, 0, cv::REDUCE_SUM); }},
    {"integral", 0.5, [](InputArray a, InputArray, OutputArray out) { cv::integral(a, out); }},
    {"cornerHarris", 1e-3, [](InputArray a, InputArray, OutputArray out) { cv::cornerHarris(a, out, 2, 3, 0.04); }},
    {"matchTemplate", 1e-2,
     [](InputArray a, InputArray, OutputArray out) {
         const cv::Rect part(40, 30, 24, 16);
         if (a.isUMat())
             cv::matchTemplate(a, a.getUMat()(part), out, cv::TM_CCORR_NORMED);
         else
             cv::matchTemplate(a, a.getMat()(part), out, cv::TM_CCORR_NORMED);
     }},
};

bool agree(const Operation& operation, const cv::Mat& a, const cv::Mat& b) {
    cv::Mat expected, got;
    operation.run(a, b, expected);
    cv::UMat device_a, device_b, device_out;
    a.copyTo(device_a);
    b.copyTo(device_b);
    operation.run(device_a, device_b, device_out);
    device_out.copyTo(got);
    if (got.size() != expected.size() || got.type() != expected.type()) {
        std::printf("%-16s another shape\n", operation.name);
        return false;
    }
    const double difference = cv::norm(expected, got, cv::NORM_INF);
    const bool is_right = difference <= operation.tolerance;
    std::printf("%-16s %s, largest difference %g\n", operation.name, is_right ? "right" : "WRONG", difference);
    return is_right;
}

}  // namespace

int main() {
    cv::ocl::setUseOpenCL(true);
    if (!cv::ocl::useOpenCL()) {
        std::printf("OpenCV found no OpenCL device\n");
        return 1;
    }
    std::printf("device: %s\n", cv::ocl::Device::getDefault().name().c_str());

    cv::RNG numbers(7);
    cv::Mat colours[2], floats[2];
    for (cv::Mat& image : colours) {
        image.create(237, 331, CV_8UC3);
        numbers.fill(image, cv::RNG::UNIFORM, 0, 256);
    }
    for (cv::Mat& image : floats) {
        image.create(120, 160, CV_32FC1);
        numbers.fill(image, cv::RNG::UNIFORM, 0.1, 1.0);
    }
    int wrong = 0;
    for (const Operation& operation : operations_on_bytes)
        wrong += agree(operation, colours[0], colours[1]) ? 0 : 1;
    for (const Operation& operation : operations_on_floats)
        wrong += agree(operation, floats[0], floats[1]) ? 0 : 1;
    std::printf("%d wrong\n", wrong);
    return wrong == 0 ? 0 : 1;
}
