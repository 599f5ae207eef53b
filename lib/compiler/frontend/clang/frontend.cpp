// Clang runs in this process with an in-memory file system: the program's source, the headers that the application passes, and
// Clang's own headers from disk. An #include of any other file on disk is recorded, because the result must then not be cached.
#include "frontend.h"

#include "clang_definitions.h"
#include "event_header.h"
#include "files/debug_source.h"
#include "files/paths.h"
#include "half_header.h"
#include "module/block_kernels.h"
#include "module/global_constructors.h"
#include "module/value_names.h"
#include "parsed_arguments.h"
#include "pipe_header.h"
#include "sub_group_header.h"
#include "work_group_header.h"

#include <base/options.h>
#include <compiler/opencl_version.h>

#include <algorithm>
#include <array>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Frontend/Utils.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <optional>
#include <ranges>

namespace polder::compiler {
namespace {

// The directory, in memory only, of the headers that the application passes.
constexpr const char* headers_directory = "/polder-embedded-headers";

// A header with declarations that Clang lacks or has in an unsuitable form. Programs whose text contains one of the words include it; without
// words, every program does.
struct Declarations {
    const char* path;
    std::string_view text;
    std::array<std::string_view, 3> words;
};
constexpr std::array declarations{
    Declarations{half_header_path, half_header, {}},
    Declarations{event_header_path, event_header, {"CLK_NULL_EVENT"}},
    Declarations{pipe_header_path, pipe_header, {"CLK_NULL_RESERVE_ID"}},
    Declarations{sub_group_header_path, sub_group_header, {"intel_sub_group_"}},
    Declarations{work_group_header_path,
                 work_group_header,
                 {"work_group_reduce_", "work_group_scan_", "async_work_group_copy_"}},
};

std::string extension_list(const Target& target) {
    std::string list = "-cl-ext=-all";
    for (const std::string& extension : target.extensions)
        list += ",+" + extension;
    for (const std::string& feature : target.features)
        list += ",+" + feature;
    return list;
}

// Clang 22 does not have OpenCL C 3.1. Compared to 3.0 it adds functions, which the mandatory extensions declare, printf's length
// modifiers z and t, which Clang accepts in any version, and these macros.
void add_standard(std::vector<std::string>& arguments, const CompileInput& input, const std::string& standard) {
    const bool is_3_1 = standard == "CL3.1";
    arguments.push_back("-cl-std=" + (is_3_1 ? "CL3.0" : standard));
    arguments.push_back("-D__OPENCL_VERSION__=" + std::to_string(opencl_version(input.target)));
    if (is_3_1)
        for (const char* argument : {"-U__OPENCL_C_VERSION__", "-D__OPENCL_C_VERSION__=310", "-DCL_VERSION_3_1=310"})
            arguments.emplace_back(argument);
}

// Records whether the preprocessor opened a file that is neither one of Clang's headers nor in memory.
class DiskReads final : public clang::DependencyCollector {
public:
    bool sawDependency(llvm::StringRef name, bool, bool is_system, bool, bool) override {
        is_any_ |= !is_system && name != source_name && !name.starts_with(headers_directory) &&
                   !name.starts_with("<") &&
                   std::ranges::find(declarations, name, &Declarations::path) == declarations.end();
        return false;
    }
    bool needSystemDependencies() override { return false; }
    [[nodiscard]] bool is_any() const { return is_any_; }

private:
    bool is_any_ = false;
};

std::string base_header() { return paths().resource_directory + "/include/opencl-c-base.h"; }

// `words`: the program's, when these are all that it uses of Clang's header.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> file_system(const CompileInput& input,
                                                            const std::optional<Words>& words) {
    auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
    for (const NamedSource& header : input.headers)
        memory->addFile(llvm::Twine(headers_directory) + "/" + header.name, 0,
                        llvm::MemoryBuffer::getMemBufferCopy(header.text, header.name));
    for (const Declarations& each : declarations)
        memory->addFile(each.path, 0, llvm::MemoryBuffer::getMemBuffer(each.text, ""));
    if (words)
        if (const auto header = ClangDefinitions::get().header_for(*words, base_header()))
            memory->addFile(base_header(), 0, llvm::MemoryBuffer::getMemBufferCopy(*header, base_header()));
    auto overlay = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(llvm::vfs::getRealFileSystem());
    overlay->pushOverlay(memory);
    return overlay;
}

// Whether the program may call these functions. Any #include counts, because the text of a header on disk is not known here.
bool may_call(const Declarations& functions, const CompileInput& input) {
    if (functions.words[0].empty())
        return true;
    const auto calls = [&](std::string_view text) {
        return std::ranges::any_of(
            functions.words, [&](std::string_view word) { return !word.empty() && text.find(word) != text.npos; });
    };
    return calls(input.source) || input.source.find("#include") != std::string::npos ||
           llvm::any_of(input.headers, [&](const NamedSource& header) { return calls(header.text); });
}

// Whether `text` has a #pragma OPENCL EXTENSION with a name that is no extension of the device.
bool enables_others(std::string_view text, const Target& target) {
    constexpr std::string_view pragma = "OPENCL EXTENSION",
                               letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    for (size_t at = text.find(pragma); at != text.npos; at = text.find(pragma, at)) {
        at = std::min(text.find_first_of(letters, at + pragma.size()), text.size());
        const std::string_view name = text.substr(at, text.find_first_not_of(letters, at) - at);
        if (name != "all" && std::ranges::find(target.extensions, name) == target.extensions.end())
            return true;
    }
    return false;
}

// The words of the program, of its options and of the headers that it includes. Nothing when there may be others.
std::optional<Words> words_of(const CompileInput& input, const BuildOptions& options,
                              const std::vector<std::string>& arguments) {
    const auto is_included = [&](const Declarations& each) { return may_call(each, input); };
    const auto is_closed = [](const Declarations& each) { return has_all_words(each.text); };
    if (!has_all_words(input.source) || !std::ranges::all_of(options.clang, has_all_words) ||
        !std::ranges::all_of(declarations | std::views::filter(is_included), is_closed) ||
        options.standard.starts_with("CLC++"))
        return std::nullopt;
    Words words;
    add_words(input.source, words);
    for (const std::string& argument : arguments)
        add_words(argument, words);
    for (const Declarations& each : declarations | std::views::filter(is_included))
        add_words(each.text, words);
    return words;
}

// `words`: the program's, when it gets only those of Clang's macros that it names. `macros`: Clang's for `arguments`, when they are known; then
// Clang itself makes none.
class CodeAction final : public clang::EmitLLVMOnlyAction {
public:
    CodeAction(llvm::LLVMContext& context, const std::vector<std::string>& arguments, const std::optional<Words>& words,
               ParsedArguments::Macros macros)
        : clang::EmitLLVMOnlyAction(&context), arguments_(arguments), words_(words), macros_(std::move(macros)) {}

protected:
    bool BeginSourceFileAction(clang::CompilerInstance& instance) override {
        clang::Preprocessor& preprocessor = instance.getPreprocessor();
        if (words_ && macros_ == nullptr) {
            macros_ = ClangDefinitions::get().macros(base_header(), preprocessor.getPredefines());
            ParsedArguments::get().keep_macros(arguments_, macros_);
        }
        if (words_ && macros_ != nullptr)
            preprocessor.setPredefines(macros_->needed_by(*words_));
        return clang::EmitLLVMOnlyAction::BeginSourceFileAction(instance);
    }

private:
    const std::vector<std::string>& arguments_;
    const std::optional<Words>& words_;
    ParsedArguments::Macros macros_;
};

// One run of Clang.
class Run {
public:
    Run(const CompileInput& input, std::optional<Words> words, std::string& log)
        : input_(input), words_(std::move(words)), stream_(log), files_(file_system(input, words_)),
          instance_(std::make_shared<clang::CompilerInvocation>()) {}

    Result<FrontendResult> compile(const std::vector<std::string>& arguments, llvm::LLVMContext& context) {
        POLDER_TRY(configure(arguments));
        auto reads = std::make_shared<DiskReads>();
        instance_.addDependencyCollector(reads);
        ParsedArguments::Macros macros = words_ ? ParsedArguments::get().macros(arguments) : nullptr;
        instance_.getPreprocessorOpts().UsePredefines = macros == nullptr;
        CodeAction action(context, arguments, words_, std::move(macros));
        if (!instance_.ExecuteAction(action))
            return fail(Status::compile_program_failure);
        std::unique_ptr<llvm::Module> module = action.takeModule();
        if (!module)
            return fail(Status::compile_program_failure);
        return FrontendResult{std::move(module), reads->is_any()};
    }

private:
    Result<void> parse(const std::vector<std::string>& arguments) {
        std::vector<const char*> pointers;
        pointers.reserve(arguments.size());
        for (const std::string& argument : arguments)
            pointers.push_back(argument.c_str());
        clang::TextDiagnosticPrinter early_printer(stream_, early_options_);
        clang::DiagnosticsEngine early(clang::DiagnosticIDs::create(), early_options_, &early_printer, false);
        if (!clang::CompilerInvocation::CreateFromArgs(instance_.getInvocation(), pointers, early))
            return fail(Status::invalid_build_options);
        if (early_printer.getNumWarnings() == 0)
            ParsedArguments::get().keep(arguments,
                                        std::make_shared<const clang::CompilerInvocation>(instance_.getInvocation()));
        return {};
    }

    Result<void> configure(const std::vector<std::string>& arguments) {
        if (const ParsedArguments::Invocation parsed = ParsedArguments::get().find(arguments))
            instance_.getInvocation() = *parsed;
        else
            POLDER_TRY(parse(arguments));
        instance_.getPreprocessorOpts().addRemappedFile(
            source_name, llvm::MemoryBuffer::getMemBufferCopy(input_.source, source_name).release());
        instance_.setVirtualFileSystem(files_);
        instance_.setVerboseOutputStream(stream_);
        instance_.createDiagnostics(new clang::TextDiagnosticPrinter(stream_, instance_.getDiagnosticOpts()), true);
        instance_.createFileManager();
        return {};
    }

    const CompileInput& input_;
    const std::optional<Words> words_;
    llvm::raw_string_ostream stream_;
    llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files_;
    clang::DiagnosticOptions early_options_;
    clang::CompilerInstance instance_;
};

// In C99 an `inline` function needs a definition in another translation unit. OpenCL programs do not have one, so the inline
// definition is kept.
void keep_inline_functions(llvm::Module& module) {
    for (llvm::Function& function : module)
        if (function.hasAvailableExternallyLinkage())
            function.setLinkage(llvm::GlobalValue::LinkOnceODRLinkage);
}

}  // namespace

std::vector<std::string> frontend_arguments(const CompileInput& input, const BuildOptions& options) {
    const Target& target = input.target;
    std::vector<std::string> arguments{
        "-triple", "spir64-unknown-unknown", "-x", "cl", "-O2",
        "-disable-llvm-passes",  // with -O2 Clang itself only keeps the bodies of `inline` functions
        "-disable-llvm-verifier", "-fdeclare-opencl-builtins", "-finclude-default-header", "-resource-dir",
        paths().resource_directory, "-internal-isystem", paths().resource_directory + "/include", "-main-file-name",
        source_name, target.has_feature("__opencl_c_images") ? "-D__IMAGE_SUPPORT__=1" : "-U__IMAGE_SUPPORT__",
        "-ferror-limit", "100",
        // Errors since Clang 16; every other OpenCL compiler warns, and programs rely on it.
        "-Wno-error=incompatible-pointer-types", "-Wno-error=int-conversion"};
    // Clang warns of #pragma OPENCL EXTENSION with an extension that it does not know. With -Werror, the pragmas of those that a device
    // reports would be errors; others are.
    if (!enables_others(input.source, target))
        arguments.emplace_back("-Wno-error=ignored-pragmas");
    if (!has_value_names())
        arguments.emplace_back("-discard-value-names");
    add_standard(arguments, input, options.standard);
    arguments.push_back(extension_list(target));
    // Clang does not know every extension that a device may report.
    for (const std::string& extension : target.extensions)
        arguments.push_back("-D" + extension + "=1");
    // With -cl-opt-disable, memory may also be read as another type than it was written.
    if (!options.is_optimized)
        arguments.emplace_back("-relaxed-aliasing");
    if (options.has_debug_information)
        for (const std::string& argument :
             {std::string{"-debug-info-kind=constructor"}, std::string{"-dwarf-version=4"},
              std::string{"-debugger-tuning=gdb"}, "-fdebug-compilation-dir=" + debug_source_directory(input.source)})
            arguments.push_back(argument);
    for (const Declarations& each : declarations)
        if (may_call(each, input)) {
            arguments.emplace_back("-include");
            arguments.emplace_back(each.path);
        }
    arguments.push_back("-I");
    arguments.emplace_back(headers_directory);
    arguments.insert(arguments.end(), options.clang.begin(), options.clang.end());
    arguments.emplace_back(source_name);
    return arguments;
}

Result<FrontendResult> run_frontend(const CompileInput& input, const BuildOptions& options, llvm::LLVMContext& context,
                                    std::string& log) {
    const std::vector<std::string> arguments = frontend_arguments(input, options);
    auto result = Run{input, words_of(input, options, arguments), log}.compile(arguments, context);
    if (!result)
        return result;
    keep_inline_functions(*result->module);
    construct_globals(*result->module, input.source);
    prepare_blocks(*result->module);
    return result;
}

}  // namespace polder::compiler
