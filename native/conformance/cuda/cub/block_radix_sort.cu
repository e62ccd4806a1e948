// A block sorts pairs by their keys, then exchanges them to be stored side by side.
#include "../device_array.h"
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_store.cuh>
#include <algorithm>

__global__ void sort(unsigned *keys, int *values) {
    using Load = cub::BlockLoad<unsigned, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using LoadValues = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_DIRECT>;
    using Sort = cub::BlockRadixSort<unsigned, 128, 4, int>;
    using Store = cub::BlockStore<unsigned, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using StoreValues = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_DIRECT>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
        typename Store::TempStorage store;
    } storage;
    __shared__ typename LoadValues::TempStorage load_values;
    __shared__ typename StoreValues::TempStorage store_values;
    unsigned key[4];
    int value[4];
    Load(storage.load).Load(keys, key);
    LoadValues(load_values).Load(values, value);
    __syncthreads();
    Sort(storage.sort).SortDescending(key, value);
    __syncthreads();
    Store(storage.store).Store(keys, key);
    StoreValues(store_values).Store(values, value);
}

int main() {
    auto keys = random_integers<unsigned>(512, 0, 0xffffffffll);
    std::vector<int> places(512);
    for (int i = 0; i < 512; i++) places[i] = i;
    DeviceArray<unsigned> key(keys);
    DeviceArray<int> value(places);
    sort<<<1, 128>>>(key.get(), value.get());
    std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return keys[a] > keys[b]; });
    REQUIRE(value.host() == places);
    std::sort(keys.rbegin(), keys.rend());
    REQUIRE(key.host() == keys);
    return finish();
}
