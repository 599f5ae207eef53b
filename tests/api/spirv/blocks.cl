// Blocks of OpenCL C. spirv/blocks.spvasm is what the SPIR-V translator makes of it.
kernel void test(queue_t queue, global int* out, int n) {
    clk_event_t gate = create_user_event(), first;
    const ndrange_t range = ndrange_1D(16);
    out[0] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, range, ^{
        out[16 + get_global_id(0)] = n - (int)get_global_id(0);
    });
    out[1] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(16, 8), 1, &gate, &first,
                            ^(local void* a, local void* b) {
                                const int id = (int)get_local_id(0);
                                ((local int*)a)[id] = out[16 + get_global_id(0)];
                                ((local char*)b)[7 - id] = (char)id;
                                barrier(CLK_LOCAL_MEM_FENCE);
                                out[32 + get_global_id(0)] = ((local int*)a)[7 - id] + 1000 * ((local char*)b)[id];
                            },
                            32, 8);
    const size_t sizes[2] = {4, 2};
    out[2] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_2D(sizes), 1, &first, 0, ^{
        if (get_global_id(0) == 3 && get_global_id(1) == 1)
            enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, range, ^{
                out[48 + get_global_id(0)] = out[47 - get_global_id(0)];
            });
    });
    set_user_event_status(gate, CL_COMPLETE);
    out[3] = get_kernel_work_group_size(^{ out[6] = 1; }) > 1;
}
