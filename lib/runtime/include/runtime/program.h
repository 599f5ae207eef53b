// Program: source, a module in an intermediate language, binaries or linked objects, and the result of the last build for each
// device.
//
// All devices share one module, which is target-neutral; devices with the same target share code. A build with a callback runs on its own
// thread; the end of the process waits for it. Any thread may call any function; callbacks run unlocked.
#pragma once

#include <compiler/spirv.h>
#include <runtime/context.h>
#include <runtime/device_code.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace polder::runtime {

class Program;

// The result of compiling or linking a program. Devices with the same language features share it.
struct BuiltModule {
    std::shared_ptr<const compiler::Module> module;
    std::string options;  // the application's
    // Launches may have work-groups of different sizes: OpenCL C 2.0 or later, without
    // -cl-uniform-work-group-size.
    enum class WorkGroups : uint8_t { uniform, any } work_groups = WorkGroups::uniform;
    // Of a program from a binary: what the device's driver has compiled (polder/program_binaries.h), if anything.
    std::string machine_code = {};
};

// The last build of a program for one device.
struct DeviceBuild {
    cl_build_status status = CL_BUILD_NONE;
    std::string options;
    std::string log;
    std::shared_ptr<const BuiltModule> built;  // null: nothing
    Ref<DeviceCode> code;  // null unless an executable was built
};

// The program binary of a build for one device that has a `built`, for clGetProgramInfo.
[[nodiscard]] std::vector<std::byte> to_binary(const DeviceBuild& build, Device& device);
// invalid_binary when it is not a binary of Polder, damaged, or made for another processor or version; and when it is not one of the
// implementation behind the device's driver either.
[[nodiscard]] Result<BuiltModule> from_binary(std::span<const std::byte> bytes, Device& device);

// A clBuildProgram, clCompileProgram or clLinkProgram.
struct BuildRequest {
    enum class Step : uint8_t { build, compile, link } step = Step::build;
    std::vector<Ref<Device>> devices;
    std::string options;
    enum class Options : uint8_t { given, as_before } options_are = Options::given;
    std::vector<compiler::NamedSource> headers;  // compile
    std::vector<Ref<Program>> inputs;  // link
    using Notify = void(CL_CALLBACK*)(cl_program program, void* user);
    Notify notify = nullptr;
    void* user = nullptr;
};

class Program final : public Object {
public:
    static constexpr Kind kind = Kind::program;
    static constexpr Status invalid = Status::invalid_program;

    enum class Origin : uint8_t { source, binary, linked, il };
    using Destructor = void(CL_CALLBACK*)(cl_program program, void* user);

    Program(Ref<Context> context, std::vector<Ref<Device>> devices, Origin origin, std::string source);
    ~Program() override;

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] std::span<const Ref<Device>> devices() const { return devices_; }
    [[nodiscard]] bool has(const Device& device) const { return index_of(device).has_value(); }
    [[nodiscard]] Origin origin() const { return origin_; }
    [[nodiscard]] std::string_view source() const { return origin_ == Origin::il ? std::string_view{} : source_; }
    // The module in an intermediate language, if the program was made of one.
    [[nodiscard]] std::string_view il() const { return origin_ == Origin::il ? source_ : std::string_view{}; }

    // For programs made from an intermediate language: the values of their specialization constants, for builds that
    // begin later.
    void set_constants(std::vector<compiler::SpecializationConstant> constants) { constants_ = std::move(constants); }
    // invalid_spec_id, or invalid_value for a value of another size.
    [[nodiscard]] Result<void> specialize(uint32_t id, std::span<const std::byte> value);

    // For programs made from binaries. Devices that get the same object share what is built from it.
    void set_binary(const Device& device, std::shared_ptr<const BuiltModule> built);

    // Builds, compiles or links; on a thread of its own when there is a callback. The caller has checked devices
    // and inputs. invalid_operation while another build runs or kernels are attached.
    [[nodiscard]] Result<void> build(BuildRequest request);

    // A copy of what is known of one of the program's devices.
    [[nodiscard]] DeviceBuild device_build(const Device& device) const;
    // The executable code for `device`: its own, or that of the device it is a part of. Null when there is none.
    [[nodiscard]] Ref<DeviceCode> code(const Device& device) const;
    [[nodiscard]] BuiltModule::WorkGroups work_groups(const Device& device) const;
    // The module of the first device with an executable; null when there is none.
    [[nodiscard]] std::shared_ptr<const BuiltModule> any_executable() const;

    // While kernels are attached, the program is not built again.
    void attach_kernel() { kernels_.fetch_add(1, std::memory_order_relaxed); }
    void detach_kernel() { kernels_.fetch_sub(1, std::memory_order_release); }

private:
    [[nodiscard]] std::optional<size_t> index_of(const Device& device) const;
    // Of a device that it has.
    [[nodiscard]] size_t place_of(const Device& device) const;
    [[nodiscard]] const DeviceBuild* find_executable(const Device& device) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool has_valid_options(const BuildRequest& request) const;
    [[nodiscard]] Result<void> begin(const BuildRequest& request);
    // Calls `run`, and ends the build also when `run` throws.
    [[nodiscard]] Result<void> run_or_fail(const BuildRequest& request);
    [[nodiscard]] Result<void> run(const BuildRequest& request);
    [[nodiscard]] Result<BuiltModule> make_module(const BuildRequest& request, const Device& device, std::string& log);
    [[nodiscard]] Result<BuiltModule> compile_source(const BuildRequest& request, const Device& device,
                                                     std::string& log);
    [[nodiscard]] compiler::CompileInput compile_input(const BuildRequest& request, const Device& device) const;
    [[nodiscard]] Result<BuiltModule> link_inputs(const BuildRequest& request, const Device& device, std::string& log);
    // What is given for the device alone: its binary, or its objects of the programs that are linked.
    [[nodiscard]] std::vector<std::shared_ptr<const BuiltModule>> binary_parts(const BuildRequest& request,
                                                                               const Device& device) const;
    [[nodiscard]] Result<BuiltModule> reuse_binary(const BuildRequest& request, const Device& device);
    void finish(const Device& device, DeviceBuild build);

    Ref<Context> context_;
    const std::vector<Ref<Device>> devices_;
    const Origin origin_;
    const std::string source_;  // of Origin::il: the module's bytes
    std::vector<compiler::SpecializationConstant> constants_;  // set before the program has a handle
    std::atomic<uint32_t> kernels_{0};
    mutable Mutex mutex_;
    std::vector<DeviceBuild> builds_ POLDER_GUARDED_BY(mutex_);  // one per device
    std::map<uint32_t, std::vector<std::byte>> specialization_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::runtime
