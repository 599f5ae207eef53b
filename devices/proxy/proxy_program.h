// ProxyProgram: a program of the application, built by another implementation from the same source, or from machine code that it has made
// of it earlier.
//
// The kernels of one program share it, since program-scope variables are its own: found by SourceProgram::id. Any thread.
#pragma once

#include <base/mutex.h>

#include <map>
#include <memory>
#include <optional>
#include <proxy/foreign_context.h>
#include <string>

namespace polder::proxy {

class ProxyProgram {
public:
    // out_of_resources with the implementation's build log as detail when it refuses the program.
    [[nodiscard]] static Result<std::shared_ptr<ProxyProgram>>
    build(ForeignContext& context, const driver::SourceProgram& source, std::string_view machine_code);
    ProxyProgram(const ProxyProgram&) = delete;
    ProxyProgram& operator=(const ProxyProgram&) = delete;
    ~ProxyProgram();
    [[nodiscard]] cl_program handle() const { return handle_; }
    // In the form of TargetCode::code; empty when there is none. The same for each call: implementations add to their machine
    // code when kernels are launched.
    [[nodiscard]] std::string machine_code() const;

private:
    ProxyProgram(ForeignContext& context, cl_program handle) : context_(context), handle_(handle) {}

    ForeignContext& context_;
    const cl_program handle_;
    mutable Mutex mutex_;
    mutable std::optional<std::string> machine_code_ POLDER_GUARDED_BY(mutex_);
};

class ProgramCache {
public:
    [[nodiscard]] Result<std::shared_ptr<ProxyProgram>>
    get(ForeignContext& context, const driver::SourceProgram& source, std::string_view machine_code);

private:
    Mutex mutex_;
    std::map<uint64_t, std::weak_ptr<ProxyProgram>> programs_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::proxy
