// Printed before the addon is compiled on installation, so that it is there to read when that fails.
console.error(`
gguf-native: compiling the addon, as no prebuilt one fits this system (${process.platform}-${process.arch}) or npm was told to.
This needs a C++17 compiler, make and Python 3:

  Debian, Ubuntu   apt-get install g++ make python3
  Fedora           dnf install gcc-c++ make python3
  Alpine           apk add g++ make python3
  macOS            xcode-select --install
  Windows          Visual Studio 2022 with "Desktop development with C++", and Python 3
`);
