// The prebuilt addons of a release, one for each system on which nothing must be compiled: files in prebuilds/, as prebuildify
// names them and node-gyp-build finds them. Those for Linux run with glibc and with musl.
const systems = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-arm64", "win32-x64"];

export const prebuilds = systems.map((system) => `${system}/gguf-native.node`);
