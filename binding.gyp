# How users build the addon: node-gyp, when no prebuilt one fits. native/CMakeLists.txt reads the same list of sources.
{
  "variables": {
    # --portable=true: for prebuilt addons, which have to run on older systems than the one that they were built on. They
    # bring the C++ runtime along, and do without what glibc got later.
    "portable%": "false",
    # --clang_cl=true: compiles with Clang in Visual Studio, whose kernels are faster than cl.exe's.
    "clang_cl%": "false",
  },
  "targets": [
    {
      "target_name": "gguf_native",
      "sources": [
        "<!@(node -p \"require('fs').readFileSync('native/sources.txt','utf8').match(/^[a-z]\\S+/gm).map(f=>'native/'+f).join(' ')\")",
      ],
      "include_dirs": [
        "native",
        "vendor/node-addon-api",
      ],
      "defines": [
        "NAPI_VERSION=8",
        "NODE_ADDON_API_CPP_EXCEPTIONS",
        "NODE_ADDON_API_DISABLE_DEPRECATED",
        # In a worker that is being terminated nothing can be thrown; do not abort the process over it.
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS",
      ],
      # One set of flags for every file. Contraction to fused multiply-add would change results by the compiler.
      "cflags!": ["-O2"],
      "cflags": ["-O3", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"],
      "cflags_cc!": ["-fno-exceptions", "-std=gnu++17", "-std=gnu++20"],
      "cflags_cc": ["-std=c++17", "-fexceptions", "-fvisibility-inlines-hidden"],
      "xcode_settings": {
        "CLANG_CXX_LANGUAGE_STANDARD": "c++17",
        "CLANG_CXX_LIBRARY": "libc++",
        "GCC_ENABLE_CPP_EXCEPTIONS": "YES",
        "GCC_OPTIMIZATION_LEVEL": "3",
        "GCC_SYMBOLS_PRIVATE_EXTERN": "YES",
        "GCC_INLINES_ARE_PRIVATE_EXTERN": "YES",
        "MACOSX_DEPLOYMENT_TARGET": "11.0",
        "OTHER_CFLAGS": ["-ffp-contract=off"],
      },
      "msvs_settings": {
        "VCCLCompilerTool": {
          "AdditionalOptions": ["/std:c++17", "/utf-8", "/fp:precise", "/Zc:__cplusplus"],
          "AdditionalOptions!": ["/std:c++20"],
          "ExceptionHandling": 1,
          "FavorSizeOrSpeed": 1,
          "Optimization": 2,
        },
      },
      "conditions": [
        ["OS=='win'", {"defines": ["_HAS_EXCEPTIONS=1", "NOMINMAX", "WIN32_LEAN_AND_MEAN"]}],
        ["OS=='win' and clang_cl=='true'", {"msbuild_toolset": "ClangCL"}],
        ["OS=='linux'", {"ldflags": ["-Wl,--version-script=<(module_root_dir)/native/binding/exports.map"]}],
        ["OS=='linux' and portable=='true'", {
          "defines": ["GGUF_NATIVE_OLD_GLIBC"],
          # The C++ runtime linked in, and of the C library only what has one name in glibc and in musl: not the dynamic
          # linker, which GCC would name as well.
          "ldflags": ["-nodefaultlibs", "-Wl,--gc-sections"],
          "libraries": ["-l:libstdc++.a", "-lgcc_eh", "-lgcc", "-l:libc.so.6"],
        }],
      ],
    },
  ],
}
