// Memory fences between accesses of work-items to their own elements, as kernels that were written for GPUs have them.
kernel void fences(global const float* in, global float* out, local float* tile, int rounds) {
    const int id = get_local_id(0);
    tile[id] = in[get_global_id(0)];
    mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    float x = tile[id];
    for (int i = 0; i < rounds; ++i) x = x * x * 0.5f - x * 0.25f + 0.1f;
    tile[id] = x;
    mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    out[get_global_id(0)] = tile[id] * 2.0f;
}
