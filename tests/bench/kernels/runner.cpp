// kernel_runner DESCRIPTION.launch RESULTS: times the launches of one kernel file on the first OpenCL device of the first platform.
//
// The kernels are in the .cl file of the same name. The description has one item a line; # begins a comment:
//   options TEXT                          of clBuildProgram
//   buffer NAME TYPE COUNT zero           TYPE: uchar, ushort, int, uint, long, ulong, float, double
//   buffer NAME TYPE COUNT random LOW HIGH     pseudo-random, the same for every implementation
//   buffer NAME TYPE COUNT ramp FIRST STEP     FIRST, FIRST + STEP, ..., such as the starts of rows
//   launch KERNEL GLOBAL LOCAL TIMES ARGUMENT...     sizes as 64x64; LOCAL - leaves it to the implementation.
//       An argument is a buffer's name, TYPE:VALUE, or local:BYTES
//   result NAME TOLERANCE                 a buffer to compare: |a - b| <= TOLERANCE * max(1, |a|)
// All launches in their order are one round. Prints four numbers in seconds: building, the first round, the shortest of the rounds
// that follow (at least three, for half a second), and the median of their processor times. RESULTS receives the results after the
// first round, as text.
//
// Plain C API, one process for each measurement, errors end the process.
#include <CL/cl.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void stop(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
}

void check(cl_int status, const std::string& what) {
    if (status != CL_SUCCESS)
        stop(what + " failed: " + std::to_string(status));
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of all threads of this process.
double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    constexpr double nanosecond = 1e-9;
    return static_cast<double>(now.tv_sec) + nanosecond * static_cast<double>(now.tv_nsec);
}

struct Bytes {
    std::vector<unsigned char> data;
    template <class T>
    void add(T value) {
        const auto* raw = reinterpret_cast<const unsigned char*>(&value);
        data.insert(data.end(), raw, raw + sizeof value);
    }
};

// Appends `value` as an element of OpenCL's type `type`.
void add_as(Bytes& bytes, const std::string& type, double value) {
    if (type == "uchar")
        bytes.add(static_cast<cl_uchar>(value));
    else if (type == "ushort")
        bytes.add(static_cast<cl_ushort>(value));
    else if (type == "int")
        bytes.add(static_cast<cl_int>(value));
    else if (type == "uint")
        bytes.add(static_cast<cl_uint>(value));
    else if (type == "long")
        bytes.add(static_cast<cl_long>(value));
    else if (type == "ulong")
        bytes.add(static_cast<cl_ulong>(value));
    else if (type == "float")
        bytes.add(static_cast<cl_float>(value));
    else if (type == "double")
        bytes.add(static_cast<cl_double>(value));
    else
        stop("unknown type " + type);
}

template <class T>
void print_all(std::ostream& out, const Bytes& bytes) {
    for (size_t at = 0; at < bytes.data.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, &bytes.data[at], sizeof value);
        out << +value << '\n';
    }
}

void print(std::ostream& out, const std::string& type, const Bytes& bytes) {
    out.precision(9);
    if (type == "uchar")
        print_all<cl_uchar>(out, bytes);
    else if (type == "ushort")
        print_all<cl_ushort>(out, bytes);
    else if (type == "int")
        print_all<cl_int>(out, bytes);
    else if (type == "uint")
        print_all<cl_uint>(out, bytes);
    else if (type == "long")
        print_all<cl_long>(out, bytes);
    else if (type == "ulong")
        print_all<cl_ulong>(out, bytes);
    else if (type == "float")
        print_all<cl_float>(out, bytes);
    else
        print_all<cl_double>(out, bytes);
}

struct Buffer {
    std::string type;
    Bytes initial;
    cl_mem object = nullptr;
};

struct Launch {
    cl_kernel kernel = nullptr;
    std::vector<size_t> global, local;
    unsigned times = 1;
};

std::vector<size_t> sizes_of(const std::string& text) {
    std::vector<size_t> result;
    std::istringstream parts(text == "-" ? "" : text);
    for (std::string part; std::getline(parts, part, 'x');)
        result.push_back(std::stoul(part));
    return result;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    if (!file)
        stop("cannot read " + path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

class Runner {
public:
    Runner() {
        cl_platform_id platform = nullptr;
        check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), "clGetDeviceIDs");
        cl_int status = 0;
        context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
        check(status, "clCreateContext");
        queue_ = clCreateCommandQueueWithProperties(context_, device_, nullptr, &status);
        check(status, "clCreateCommandQueueWithProperties");
    }

    void read(const std::string& description) {
        std::istringstream lines(read_file(description));
        const std::string base = description.substr(0, description.rfind('.'));
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line.substr(0, line.find('#')));
            std::string item;
            if (!(words >> item))
                continue;
            if (item == "options")
                std::getline(words, options_);
            else if (item == "buffer")
                add_buffer(words);
            else if (item == "launch")
                add_launch(words, base + ".cl");
            else if (item == "result")
                add_result(words);
            else
                stop(description + ": unknown item " + item);
        }
    }

    void run(const std::string& results) {
        const auto start = Clock::now();
        round();
        const double first = seconds_since(start);
        write_results(results);
        double best = 1e30;
        std::vector<double> work;
        const auto begin = Clock::now();
        for (int i = 0; i < 3 || (seconds_since(begin) < 0.5 && i < 1000); ++i) {
            const auto from = Clock::now();
            const double before = processor_seconds();
            round();
            best = std::min(best, seconds_since(from));
            work.push_back(processor_seconds() - before);  // may miss what another thread has just done
        }
        std::ranges::nth_element(work, work.begin() + static_cast<std::ptrdiff_t>(work.size() / 2));
        std::printf("%.9g %.9g %.9g %.9g\n", build_seconds_, first, best, work[work.size() / 2]);
    }

private:
    void add_buffer(std::istream& words) {
        std::string name, fill;
        size_t count = 0;
        Buffer buffer;
        words >> name >> buffer.type >> count >> fill;
        double low = 0, high = 0, step = 0;
        if (fill == "random")
            words >> low >> high;
        else if (fill == "ramp")
            words >> low >> step;
        else if (fill != "zero")
            stop("unknown contents " + fill + " of buffer " + name);
        std::mt19937 random(static_cast<uint32_t>(buffers_.size()) + 1);
        for (size_t i = 0; i < count; ++i)
            add_as(buffer.initial, buffer.type,
                   fill == "ramp" ? low + static_cast<double>(i) * step
                                  : low + (high - low) * (random() / 4294967296.0));
        cl_int status = 0;
        buffer.object = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, buffer.initial.data.size(),
                                       buffer.initial.data.data(), &status);
        check(status, "clCreateBuffer");
        buffers_[name] = buffer;
    }

    void build(const std::string& path) {
        const std::string source = read_file(path);
        const char* text = source.c_str();
        const auto start = Clock::now();
        cl_int status = 0;
        program_ = clCreateProgramWithSource(context_, 1, &text, nullptr, &status);
        check(status, "clCreateProgramWithSource");
        status = clBuildProgram(program_, 1, &device_, options_.c_str(), nullptr, nullptr);
        if (status != CL_SUCCESS) {
            std::string log(65536, '\0');
            clGetProgramBuildInfo(program_, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
            stop(path + " does not build:\n" + log.c_str());
        }
        build_seconds_ = seconds_since(start);
    }

    void add_launch(std::istream& words, const std::string& path) {
        if (program_ == nullptr)
            build(path);
        std::string name, global, local;
        Launch launch;
        words >> name >> global >> local >> launch.times;
        launch.global = sizes_of(global);
        launch.local = sizes_of(local);
        cl_int status = 0;
        launch.kernel = clCreateKernel(program_, name.c_str(), &status);
        check(status, "clCreateKernel " + name);
        cl_uint index = 0;
        for (std::string argument; words >> argument;)
            set_argument(launch.kernel, index++, argument);
        launches_.push_back(launch);
    }

    void set_argument(cl_kernel kernel, cl_uint index, const std::string& argument) {
        const size_t colon = argument.find(':');
        if (const auto found = buffers_.find(argument); found != buffers_.end()) {
            check(clSetKernelArg(kernel, index, sizeof(cl_mem), &found->second.object), "clSetKernelArg");
        } else if (colon == std::string::npos) {
            stop("no buffer " + argument);
        } else if (const std::string type = argument.substr(0, colon); type == "local") {
            check(clSetKernelArg(kernel, index, std::stoul(argument.substr(colon + 1)), nullptr), "clSetKernelArg");
        } else {
            Bytes value;
            add_as(value, type, std::stod(argument.substr(colon + 1)));
            check(clSetKernelArg(kernel, index, value.data.size(), value.data.data()), "clSetKernelArg");
        }
    }

    void add_result(std::istream& words) {
        std::string name, tolerance;
        if (!(words >> name >> tolerance))
            stop("a result needs a buffer and a tolerance");
        if (!buffers_.contains(name))
            stop("no buffer " + name);
        results_.emplace_back(name, tolerance);
    }

    void round() {
        for (const Launch& launch : launches_)
            for (unsigned i = 0; i < launch.times; ++i)
                check(clEnqueueNDRangeKernel(queue_, launch.kernel, static_cast<cl_uint>(launch.global.size()), nullptr,
                                             launch.global.data(), launch.local.empty() ? nullptr : launch.local.data(),
                                             0, nullptr, nullptr),
                      "clEnqueueNDRangeKernel");
        check(clFinish(queue_), "clFinish");
    }

    // A line for each result with its tolerance and number of values, then the values.
    void write_results(const std::string& path) {
        std::ofstream out(path);
        for (const auto& [name, tolerance] : results_) {
            Buffer& buffer = buffers_[name];
            Bytes bytes = buffer.initial;
            check(clEnqueueReadBuffer(queue_, buffer.object, CL_TRUE, 0, bytes.data.size(), bytes.data.data(), 0,
                                      nullptr, nullptr),
                  "clEnqueueReadBuffer");
            out << "result " << name << ' ' << tolerance << '\n';
            print(out, buffer.type, bytes);
        }
    }

    cl_device_id device_ = nullptr;
    cl_context context_ = nullptr;
    cl_command_queue queue_ = nullptr;
    cl_program program_ = nullptr;
    std::string options_;
    double build_seconds_ = 0;
    std::map<std::string, Buffer> buffers_;
    std::vector<Launch> launches_;
    std::vector<std::pair<std::string, std::string>> results_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 3)
        stop("kernel_runner DESCRIPTION.launch RESULTS");
    Runner runner;
    runner.read(arguments[1]);
    runner.run(arguments[2]);
}
