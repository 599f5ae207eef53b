// ProxyProgram: a program of the application, built by another implementation from the same source.
//
// The kernels of one program share it, since program-scope variables are its own: found by SourceProgram::id. Any thread.
#pragma once

#include <base/mutex.h>

#include <map>
#include <memory>
#include <proxy/foreign_context.h>

namespace polder::proxy {

class ProxyProgram {
public:
    // out_of_resources with the implementation's build log as detail when it refuses the program.
    [[nodiscard]] static Result<std::shared_ptr<ProxyProgram>> build(ForeignContext& context,
                                                                     const driver::SourceProgram& source);
    ProxyProgram(const ProxyProgram&) = delete;
    ProxyProgram& operator=(const ProxyProgram&) = delete;
    ~ProxyProgram();
    [[nodiscard]] cl_program handle() const { return handle_; }

private:
    ProxyProgram(ForeignContext& context, cl_program handle) : context_(context), handle_(handle) {}

    ForeignContext& context_;
    const cl_program handle_;
};

class ProgramCache {
public:
    [[nodiscard]] Result<std::shared_ptr<ProxyProgram>> get(ForeignContext& context,
                                                            const driver::SourceProgram& source);

private:
    Mutex mutex_;
    std::map<uint64_t, std::weak_ptr<ProxyProgram>> programs_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::proxy
