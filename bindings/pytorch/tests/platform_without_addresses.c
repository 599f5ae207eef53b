/* An OpenCL platform for tests: one device, which has neither unified shared memory nor addresses of buffers, and makes no
   contexts. The loader finds it by clIcdGetPlatformIDsKHR. */
#include <CL/cl_icd.h>
#include <string.h>

typedef struct {
    const cl_icd_dispatch *dispatch;
} Object;

static cl_icd_dispatch functions;
static Object platform = {&functions}, device = {&functions};

static cl_int answer(const void *value, size_t size, size_t given, void *to, size_t *size_to) {
    if (to && given < size)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, size);
    if (size_to)
        *size_to = size;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL platform_info(cl_platform_id id, cl_platform_info name, size_t given, void *to, size_t *size) {
    const char *text = name == CL_PLATFORM_ICD_SUFFIX_KHR ? "TEST"
                       : name == CL_PLATFORM_EXTENSIONS   ? "cl_khr_icd"
                       : name == CL_PLATFORM_PROFILE      ? "FULL_PROFILE"
                       : name == CL_PLATFORM_VERSION      ? "OpenCL 3.0 test"
                                                          : "no addresses";
    (void)id;
    return answer(text, strlen(text) + 1, given, to, size);
}

static cl_int CL_API_CALL device_ids(cl_platform_id id, cl_device_type type, cl_uint given, cl_device_id *to, cl_uint *count) {
    (void)id, (void)type;
    if (to && given > 0)
        to[0] = (cl_device_id)&device;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id id, cl_device_info name, size_t given, void *to, size_t *size) {
    (void)id;
    return name == CL_DEVICE_EXTENSIONS ? answer("cl_khr_icd", 11, given, to, size) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL platform_ids(cl_uint given, cl_platform_id *to, cl_uint *count) {
    functions.clGetPlatformInfo = platform_info;
    functions.clGetDeviceIDs = device_ids;
    functions.clGetDeviceInfo = device_info;
    if (to && given > 0)
        to[0] = (cl_platform_id)&platform;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (void *)platform_ids
           : strcmp(name, "clGetPlatformInfo") == 0    ? (void *)platform_info
                                                       : NULL;
}
