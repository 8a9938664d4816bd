#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "binding/entry_points.h"
#include "dequant/dequant.h"
#include "machine/thread_slots.h"
#include "quant/quantize.h"

namespace gguf::binding {

napi_value list_formats(const Call& call) {
  Napi::Array list = Napi::Array::New(call.env());
  for (const Format& format : formats()) {
    Napi::Object item = Napi::Object::New(call.env());
    item.Set("name", format.name);
    item.Set("id", static_cast<double>(format.id));
    item.Set("blockSize", static_cast<double>(format.block_elements));
    item.Set("typeSize", static_cast<double>(format.block_bytes));
    item.Set("encodes", can_quantize(format));
    item.Set("needsImportance", needs_importance(format));
    list.Set(list.Length(), item);
  }
  return list;
}

napi_value describe_cpu(const Call& call) {
  Napi::Object cpu = Napi::Object::New(call.env());
  Napi::Array available = Napi::Array::New(call.env());
  for (const char* isa : available_isas()) available.Set(available.Length(), isa);
  cpu.Set("isa", active_isa());
  cpu.Set("available", available);
  cpu.Set("threads", static_cast<double>(ThreadSlots::of_process().limit()));
  return cpu;
}

napi_value end_process(const Call& call) {
  const std::chrono::milliseconds time(call.uint32(0, "milliseconds"));
  const int code = static_cast<int>(call.uint32(1, "code"));
  try {
    std::thread([time, code] {
      std::this_thread::sleep_for(time);
      std::_Exit(code);
    }).detach();
  } catch (const std::system_error&) {
    // No thread is left: the process ends by itself, as it nearly always does.
  }
  return nullptr;
}

}  // namespace gguf::binding
