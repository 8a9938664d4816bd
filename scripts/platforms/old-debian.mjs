// Node with the libraries of Debian 11, the oldest system that a release supports: glibc 2.31.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, output, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { fetchNode, makeLauncher, nodeVersions } from "./other-node.mjs";

const release = "bullseye";
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const libraries = ["libc6", "libgcc-s1", "libstdc++6"];

/** Fetches packages of that release to `folder`, from this machine's own mirror, and unpacks them to `system`. */
function unpackDebian(folder, system) {
  const [site] = output("apt-get", [
    ...["indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main", "Origin: Debian"],
  ]).split("\n");
  if (site === "") fail("apt-get knows no mirror of Debian: run apt-get update");
  const path = (name) => join(folder, name);
  for (const name of ["lists/partial", "cache/archives/partial", "packages"])
    mkdirSync(path(name), { recursive: true });
  writeFileSync(path("sources.list"), `deb [signed-by=${keyring}] ${site} ${release} main\n`);
  const settings = [
    `Dir::Etc::sourcelist=${path("sources.list")}`,
    "Dir::Etc::sourceparts=-",
    `Dir::State::lists=${path("lists")}`,
    `Dir::Cache=${path("cache")}`,
    "APT::Sandbox::User=root", // can write here
  ].flatMap((setting) => ["-o", setting]);
  run("apt-get", [...settings, "-qq", "update"]);
  const wanted = libraries.map((name) => `${name}/${release}`);
  run("apt-get", [...settings, "-qq", "download", ...wanted], { cwd: path("packages") });
  for (const name of readdirSync(path("packages"))) {
    run("dpkg-deb", ["--extract", join(path("packages"), name), system]);
  }
}

export function oldDebianNode() {
  const folder = join(root, "build", "debian11");
  const system = join(folder, "root");
  rmSync(folder, { recursive: true, force: true });
  unpackDebian(folder, system);
  const paths = ["lib", "usr/lib"].map((path) => join(system, path, "x86_64-linux-gnu"));
  const node = makeLauncher(folder, [
    ...[join(paths[0], "ld-2.31.so"), "--library-path", paths.join(":")],
    fetchNode("linux-x64", nodeVersions[20]),
  ]);
  const glibc = output(node, ["-p", "process.report.getReport().header.glibcVersionRuntime"]).trim();
  if (glibc !== "2.31") fail(`Node runs with glibc ${glibc} instead of Debian 11's`);
  return node;
}
