// Hand-off through a volatile flag, as code from before C++11 atomics does it.

extern "C" __global__ void volatile_flag_racy(int *payload, volatile int *ready, int *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        payload[0] = 42;
        payload[1] = 43;
        *ready = 1;
    } else {
        while (*ready == 0) {
        }
        int first = payload[0];
        int second = payload[1];
        out[0] = first;
        out[1] = second;
    }
}

extern "C" __global__ void volatile_flag_fixed(int *payload, volatile int *ready, int *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        payload[0] = 42;
        payload[1] = 43;
        __threadfence();
        *ready = 1;
    } else {
        while (*ready == 0) {
        }
        __threadfence();
        int first = payload[0];
        int second = payload[1];
        out[0] = first;
        out[1] = second;
    }
}
