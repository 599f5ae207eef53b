// Kernels on images that are built from this source and, by Clang, from SPIR-V: both must compute the same bits. `in` holds
// made-up elements, `out` is read back; each of 64 work-items has one element.
constant sampler_t smooth = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;
constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

kernel void plane(read_only image2d_t in, write_only image2d_t out, sampler_t given) {
    const int2 p = (int2)((int)get_global_id(0) & 7, (int)get_global_id(0) >> 3);
    const float2 f = convert_float2(p) * 0.093f;
    float4 v = read_imagef(in, p) + 2 * read_imagef(in, smooth, f) + read_imagef(in, exact, p + 3);
    v += read_imagef(in, given, f * 8);
    v += (float)(get_image_width(in) + 10 * get_image_height(in)) + convert_float2(get_image_dim(in)).xyxy;
    write_imagef(out, p, v);
}

kernel void line(read_only image1d_t in, write_only image1d_t out, sampler_t given) {
    const int p = (int)get_global_id(0);
    write_imagef(out, p, read_imagef(in, p) + read_imagef(in, smooth, (float)p * 0.031f) + (float)get_image_width(in));
}

kernel void lines(read_only image1d_array_t in, write_only image1d_array_t out, sampler_t given) {
    const int2 p = (int2)((int)get_global_id(0) & 7, (int)get_global_id(0) >> 3);
    write_imagef(out, p, read_imagef(in, p) + read_imagef(in, smooth, (float2)((float)p.x * 0.07f, (float)p.y))
                             + (float)(get_image_width(in) + 100 * (int)get_image_array_size(in)));
}

kernel void planes(read_only image2d_array_t in, write_only image2d_array_t out, sampler_t given) {
    const int4 p = (int4)((int)get_global_id(0) & 3, (int)get_global_id(0) >> 2 & 3, (int)get_global_id(0) >> 4, 0);
    write_imagef(out, p, read_imagef(in, p) + read_imagef(in, smooth, convert_float4(p) * (float4)(0.2f, 0.1f, 1, 0))
                             + (float)((int)get_image_array_size(in) + get_image_height(in)));
}

kernel void space(read_only image3d_t in, write_only image3d_t out, sampler_t given) {
    const int4 p = (int4)((int)get_global_id(0) & 3, (int)get_global_id(0) >> 2 & 3, (int)get_global_id(0) >> 4, 0);
    write_imagef(out, p, read_imagef(in, p) + read_imagef(in, smooth, convert_float4(p) * 0.17f)
                             + (float)get_image_depth(in) + convert_float4(get_image_dim(in)));
}

kernel void integers(read_write image2d_t in, write_only image2d_t out, sampler_t given) {
    const int2 p = (int2)((int)get_global_id(0) & 7, (int)get_global_id(0) >> 3);
    const uint4 v = read_imageui(in, p);
    write_imageui(in, p, v * 3);
    atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);
    write_imageui(out, p, v + read_imageui(in, p));
}

kernel void signs(read_only image2d_t in, write_only image2d_t out, sampler_t given) {
    const int2 p = (int2)((int)get_global_id(0) & 7, (int)get_global_id(0) >> 3);
    write_imagei(out, p, read_imagei(in, p).wzyx - read_imagei(in, exact, p + 1));
}
