# Where Node.js was installed without its headers, those of node-api-headers take their place: see
# scripts/build/vendor.mjs. This is in place of the common.gypi that comes with the former, and adds to the flags of
# binding.gyp what that adds: the addon is the same, whichever headers it was compiled with.
{
  "variables": {"target_arch%": "x64"},
  "target_defaults": {
    "default_configuration": "Release",
    "configurations": {
      "Debug": {"defines": ["DEBUG", "_DEBUG"], "cflags": ["-g"]},
      "Release": {"cflags": ["-O3", "-fno-omit-frame-pointer"]},
    },
    "conditions": [
      ["OS!='mac' and OS!='win'", {
        "cflags": ["-pthread", "-Wall", "-Wextra", "-Wno-unused-parameter"],
        "cflags_cc": ["-fno-rtti"],
        "ldflags": ["-pthread"],
        "target_conditions": [
          ["_toolset=='target'", {
            "conditions": [["target_arch=='x64'", {"cflags": ["-m64"], "ldflags": ["-m64"]}]],
          }],
        ],
      }],
      ["OS=='mac'", {"xcode_settings": {"GCC_ENABLE_CPP_RTTI": "NO"}}],
    ],
  },
}
