// The prebuilt addons of a release, one for each system on which nothing must be compiled: files in prebuilds/, with the
// names that node-gyp-build looks for. Those for Linux run with glibc and with musl.
export const prebuilds = [
  "darwin-arm64/gguf-native.node",
  "darwin-x64/gguf-native.node",
  "linux-arm64/gguf-native.node",
  "linux-x64/gguf-native.node",
  "win32-arm64/gguf-native.node",
  "win32-x64/gguf-native.node",
];
