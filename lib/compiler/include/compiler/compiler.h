// The compiler's interface for the runtime: from OpenCL C or SPIR-V to code for devices. No LLVM type appears here; only the
// sources of lib/compiler include LLVM.
//
// Life of a program:
//   compile(source)  -> Module (kind compiled_object)   one translation unit, unoptimised bitcode
//   link(modules)    -> Module (kind executable or library), still the same for all targets
//   Module::kernels()                                   names, arguments, attributes
//   Executable::open(module, target)                    one per (program, target)
//   Executable::code(kernel, ...)                       code for the target, made at first request
//
// Threads: every function may be called from any thread; a Module is immutable; an Executable
// serialises its own compilation.
// Errors: a failed compilation is Status::compile_program_failure, build_program_failure or
// link_program_failure, with the messages in `log`. An internal failure of the compiler (an LLVM fatal
// error, a crash of a pass, missing libclc) is reported in the same way; it does not end the process.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <polder/code.h>
#include <polder/result.h>
#include <polder/types.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polder::compiler {

// What source is compiled for. Devices with equal Targets share builds.
struct Target {
    driver::CodeTarget code;
    std::vector<std::string> extensions;  // cl_khr_*, as the device reports them (clang -cl-ext, macros)
    std::vector<std::string> features;  // __opencl_c_*, as the device reports them

    [[nodiscard]] bool has_feature(std::string_view name) const {
        return std::ranges::find(features, name) != features.end();
    }
};

enum class AddressSpace : uint8_t { private_, local, constant, global };
enum class ArgumentKind : uint8_t {
    value,
    global_pointer,
    constant_pointer,
    local_pointer,
    sampler,
    image,
    pipe,
    queue
};

struct KernelArgument {
    ArgumentKind kind = ArgumentKind::value;
    uint32_t offset = 0;  // within the packed arguments
    uint32_t size =
        0;  // bytes clSetKernelArg must be given (8 for pointers, images and samplers; 3-vectors count as 4)
    uint32_t alignment = 0;  // within the packed arguments
    // How the kernel and its callees access the memory that a global or constant pointer points to.
    // `none`: not at all. `read`: they never write. Never `overwrite`.
    Access access = Access::read_write;
    // The largest size of the memory that a pointer may be set to: SPIR-V's decoration MaxByteOffset.
    uint64_t bytes_max = std::numeric_limits<uint64_t>::max();

    std::string image_type;  // "image2d_t", ...; empty for anything but images

    // clGetKernelArgInfo, if KernelInfo::has_argument_info. The name is empty otherwise.
    AddressSpace address_space = AddressSpace::private_;
    enum class ImageAccess : uint8_t { none, read_only, write_only, read_write } image_access = ImageAccess::none;
    std::string type_name;
    std::string name;
    bool is_const = false, is_restrict = false, is_volatile = false, is_pipe = false;
};

struct KernelInfo {
    std::string name;
    std::vector<KernelArgument> arguments;
    uint32_t arguments_size = 0;  // bytes of the packed arguments
    std::string attributes;  // CL_KERNEL_ATTRIBUTES, space separated
    std::optional<std::array<uint64_t, 3>> reqd_work_group_size;
    std::optional<std::array<uint64_t, 3>> work_group_size_hint;
    bool has_argument_info = false;  // compiled with -cl-kernel-arg-info
    bool uses_indirect_pointers = false;  // may reach memory through pointers in memory (SVM)
    bool uses_program_variables = false;
    bool uses_sub_groups = false;  // calls a function of sub-groups
    std::optional<uint32_t> reqd_sub_group_size;
    // Whether the kernel's results can depend on the work-group size: it calls a function that returns a local or group id or
    // size, or it has barriers or local memory. When false, the runtime may choose any work-group size.
    bool sees_work_groups = true;
    bool enqueues_blocks = false;  // or uses events of the device
    // Bytes of a work-item's large private variables (1 KiB or more), in the kernel and all that it calls; 0 without barriers and
    // sub-groups. Before optimization, so it is an estimate, the same for all code of the kernel.
    uint64_t private_bytes_over_barriers = 0;
    // How many instructions a work-item executes at most, for a kernel that may have code of Effort::quick; otherwise 0. It is multiplied by the
    // values of the arguments `quick_factors`, which are numbers of rounds of loops.
    uint64_t quick_work = 0;
    std::vector<uint32_t> quick_factors;
};

// Program-scope variables that live in global memory (and are not constant).
struct ProgramVariables {
    uint64_t alignment = 1;
    std::vector<std::byte> image;  // initial contents; its size is the total size
    // The 8 bytes at `at` hold an address: base of the variables + the value stored in `image`.
    std::vector<uint64_t> relocations;
};

enum class ModuleKind : uint8_t { compiled_object, library, executable };

// Immutable compiled code of a program, as bitcode with its metadata.
class Module {
public:
    virtual ~Module() = default;
    [[nodiscard]] virtual ModuleKind kind() const = 0;
    // Sorted by name. Empty unless `executable`.
    [[nodiscard]] virtual std::span<const KernelInfo> kernels() const = 0;
    [[nodiscard]] virtual const ProgramVariables& program_variables() const = 0;

    // A self-describing, checksummed form that another process (same Polder, LLVM and processor) can read.
    [[nodiscard]] virtual std::vector<std::byte> serialize() const = 0;
    // The kernels of the blocks that kernels enqueue; the application cannot see them. An Executable has code for them, too.
    [[nodiscard]] virtual std::span<const KernelInfo> blocks() const = 0;
    // invalid_binary when damaged, of another version, or of another target.
    [[nodiscard]] static Result<std::shared_ptr<const Module>> deserialize(std::span<const std::byte> bytes);
};

struct NamedSource {
    std::string name;  // as #include names it
    std::string text;
};

// The value that an application gives a specialization constant of SPIR-V.
struct SpecializationValue {
    uint32_t id = 0;
    std::vector<std::byte> bytes;
};

struct CompileInput {
    std::string source;  // the module's bytes, for SPIR-V
    std::vector<NamedSource> headers;
    std::string options;  // the application's, unparsed
    Target target;
    bool is_build = false;  // clBuildProgram: linker options are allowed too; errors are build_program_failure
    enum class Language : uint8_t { opencl_c, spirv } language = Language::opencl_c;
    std::vector<SpecializationValue> specialization;
};

struct LinkInput {
    std::vector<std::shared_ptr<const Module>> modules;
    std::string options;
    Target target;
    bool is_build = false;
};

// `log` receives warnings and errors, with file names, lines and columns.
// invalid_build_options / invalid_compiler_options / invalid_linker_options for options that do not parse.
[[nodiscard]] Result<std::shared_ptr<const Module>> compile(const CompileInput& input, std::string& log);
[[nodiscard]] Result<std::shared_ptr<const Module>> link(const LinkInput& input, std::string& log);

// The size of the work-groups of a launch.
struct WorkGroups {
    std::array<uint64_t, 3> size{1, 1, 1};  // of a whole one
    enum class Ends : uint8_t {
        ragged,
        whole
    } ends = Ends::ragged;  // ragged: work-groups at the ends of the range may be smaller
    friend auto operator<=>(const WorkGroups&, const WorkGroups&) = default;
};

// Whether code for one size of work-groups is worth compiling, compared to code for any size: not at all, for a kernel that has run for long
// (`when_hot`), or before the kernel's first launch (`at_once`).
enum class Specialising : uint8_t { never, when_hot, at_once };

// In which dimensions work-groups should be wide, by their code for any size.
struct LaneDimensions {
    unsigned used = 0;  // whose work-items are lanes; 0 before that code exists
    unsigned other = 0;  // where none are: whose work-items may be lanes in code for one size; 0: of no dimension
};

// The properties of an image or a sampler argument of a launch for which code can be made: everything except an image's extents, pitches
// and address.
struct KnownArgument {
    uint32_t index = 0;  // among the kernel's arguments
    uint32_t sampler = 0;  // the bits of a sampler (image_abi.h)
    // Of an image, as in its ImageDescriptor.
    uint32_t channel_order = 0;
    uint32_t channel_type = 0;
    uint32_t element_bytes = 0;
    uint32_t kind = 0;
    friend auto operator<=>(const KnownArgument&, const KnownArgument&) = default;
};

// How much is done for code. `quick`: for launches with little work, one work-item after the other and hardly optimised, in half the time or
// less. Its results are those of other code.
enum class Effort : uint8_t { full, quick };

// How a kernel is compiled for the same launches: what the compiler estimates to be fastest (`planned`) is not for some kernels. The device measures which form is
// fastest (decision 325). `best`: the form that an earlier measurement found, else `planned`. All forms have the same results.
enum class Form : uint8_t { best, planned, one_vector, two_vectors, four_vectors, without_lanes, with_lanes };

// The launches that code without WorkGroups is for. `usual`: in the dimension of its lanes, work-groups consist of whole vectors
// (Executable::row_multiple), and ids are small. Such code has fewer copies of each loop (decision 345). `whole_vectors`: usual launches in whose rows one vector is
// whole, but not each number of vectors that may run at once.
enum class Launches : uint8_t { any, usual, whole_vectors };
// In usual launches no global size, and no offset, is larger in any dimension, and no work-group has as many work-items in a row.
inline constexpr uint64_t usual_size_max = uint64_t{1} << 27, usual_row_end = uint64_t{1} << 16;
// The number of work-items of which their rows are multiples: of one vector, or of as many vectors as may run at once. Work-groups with other dimensions, too, are
// often squares. The offset of the ids in that dimension is a multiple of the work-items of one vector.
constexpr uint64_t usual_row_multiple(bool has_other_dimensions) { return has_other_dimensions ? 16 : 64; }

// What code was specialised for. It must only be launched with these groups and arguments. Without either, it is code for any launch.
struct CodeVersion {
    std::optional<WorkGroups> groups;
    std::vector<KnownArgument> known;  // all images and samplers in their order, or none
    Effort effort = Effort::full;
    Form form = Form::best;
    Launches launches = Launches::any;  // others only without groups
    [[nodiscard]] bool is_general() const {
        return !groups && known.empty() && effort == Effort::full && form == Form::best && launches == Launches::any;
    }
    friend auto operator<=>(const CodeVersion&, const CodeVersion&) = default;
};

// The sizes that a sub-group can have on host devices, smallest first, and the default size.
[[nodiscard]] std::span<const uint32_t> sub_group_sizes();
[[nodiscard]] uint32_t default_sub_group_size();

// Code of an executable Module's kernels for one target. Destroying it unloads host code: the caller keeps it alive
// while launches are in flight.
class Executable {
public:
    virtual ~Executable() = default;
    // invalid_program_executable for a module that is no executable; compiler_not_available for a format that nothing here
    // generates.
    [[nodiscard]] static Result<std::shared_ptr<Executable>> open(std::shared_ptr<const Module> module,
                                                                  const Target& target);
    // Compiles at first request (or loads the result from the disk cache); later requests are a
    // look-up. The pointer, and what it points to, stay valid as long as the Executable. On failure `out_of_resources` with the
    // reason as detail.
    [[nodiscard]] virtual Result<const driver::KernelCode*> code(std::string_view kernel,
                                                                 const CodeVersion& version) = 0;
    [[nodiscard]] Result<const driver::KernelCode*> code(std::string_view kernel,
                                                         const std::optional<WorkGroups>& groups) {
        return code(kernel, CodeVersion{groups, {}});
    }
    // Whether there can be code of Effort::quick for kernels with KernelInfo::quick_work.
    [[nodiscard]] virtual bool has_quick_code() const { return false; }
    // Whether code for exactly these work-groups should be compiled. `dimensions`: those of the code for any groups.
    [[nodiscard]] virtual Specialising specialising(const WorkGroups& groups,
                                                    const LaneDimensions& dimensions) const = 0;
    // The forms of which code is worth measuring beside this version's best one, the likely ones first. Empty when its code was not made yet.
    // Code of a form that is the same as the best one cannot be made.
    [[nodiscard]] virtual std::vector<Form> other_forms(std::string_view, const CodeVersion&) { return {}; }
    // The best form from now on, also of later processes.
    virtual void prefer(std::string_view, const CodeVersion&) {}
    // The version's form was measured, so later processes measure others first.
    virtual void note_measured(std::string_view, const CodeVersion&) {}
    // Whether code for known images and samplers differs from code for any.
    [[nodiscard]] virtual bool specialises_for_images() const { return false; }
    // Of this code; none when it was not made yet.
    [[nodiscard]] virtual LaneDimensions lane_dimensions(std::string_view, const CodeVersion&) { return {}; }
    // In code for usual launches, the number of work-items of which each row in this dimension is a multiple. 1: the code is for any launch.
    [[nodiscard]] virtual uint64_t row_multiple(std::string_view, const CodeVersion&) { return 1; }
    [[nodiscard]] LaneDimensions lane_dimensions(std::string_view kernel) {
        return lane_dimensions(kernel, CodeVersion{});
    }
};

// Where Clang's resource headers and the library of built-ins were found; for error messages and
// clinfo. Does not fail: `problem` names missing files.
struct Installation {
    std::string builtins_path;
    std::string problem;
};
[[nodiscard]] Installation installation();

// clUnloadPlatformCompiler: releases memory that the compiler keeps between compilations.
void unload();

}  // namespace polder::compiler
