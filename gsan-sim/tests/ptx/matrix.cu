// nvcc -ptx -arch=compute_80 matrix.cu
#include <cstdint>

// D = A·B + C for one 16×8×16 tile: A row-major f16, B column-major f16, C and D row-major f32.
extern "C" __global__ void tile(const uint16_t* a, const uint16_t* b, const float* c, float* d, int spread) {
    __shared__ alignas(16) uint16_t sa[16 * 16], sb[8 * 16];
    int l = threadIdx.x;
    for (int i = l; i < 256; i += 32) sa[i] = a[i];
    for (int i = l; i < 128; i += 32) sb[i] = b[i];
    __syncwarp();
    uint32_t ra[4], rb[2];
    uint32_t pa = (uint32_t)__cvta_generic_to_shared(&sa[(l % 16) * 16 + (l / 16) * 8]);
    uint32_t pb = (uint32_t)__cvta_generic_to_shared(&sb[(l % 8) * 16 + (l / 8 % 2) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
    float r[4];
    int g = l / 4, t = l % 4;
    for (int i = 0; i < 4; i++) r[i] = c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    for (int i = 0; i < 4; i++) d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = r[i];
}
