// SPDX-License-Identifier: BSD-2-Clause
// Makes the page of its sources: node build.mjs PACKAGES PAGE LICENSES
// PACKAGES is a folder where npm has installed package-lock.json. The same sources and packages give the same bytes.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [packages, page, licences] = process.argv.slice(2).map((path) => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));
const { buildSync } = createRequire(join(packages, "package.json"))("esbuild");
const OPTIONS = { bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none", logLevel: "warning",
                  absWorkingDir: here, nodePaths: [join(packages, "node_modules")] };

const script = buildSync({ ...OPTIONS, entryPoints: ["main.js"], format: "iife", target: "es2022", metafile: true });
const style = buildSync({ ...OPTIONS, entryPoints: ["style.css"], target: "chrome111" });

/** Packages of which something is in the script, by name. */
function usedPackages(inputs) {
  const names = Object.keys(inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
  return [...new Set(names.filter(Boolean))].sort().map((name) => {
    const folder = join(packages, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json")));
    return { title: `${name} ${version} (${license})`, text: readFileSync(join(folder, "LICENSE"), "utf8").trim() };
  });
}

/** Each text once, below the names of all packages that have it. */
function licenceTexts(list) {
  const texts = new Map();
  for (const { title, text } of list) texts.set(text, [...(texts.get(text) || []), title]);
  return [...texts].map(([text, titles]) => `${titles.join("\n")}\n\n${text}\n`).join("\n----\n\n");
}

/** The text of an inline element, and its hash for the policy: only these two may run or apply. */
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

const used = licenceTexts(usedPackages(Object.values(script.metafile.outputs)[0].inputs));
const js = script.outputFiles[0].text.trim().replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--");
const css = style.outputFiles[0].text.trim();
const policy = `default-src 'none'; script-src ${hash(js)}; style-src ${hash(css)}; base-uri 'none'; form-action 'none'`;
const parts = { CSP: policy, STYLE: css, SCRIPT: js,
                LICENSES: escaped(`kxray is under the BSD-2-Clause licence. This page contains parts of:\n\n${used}`) };
const html = readFileSync(join(here, "index.html"), "utf8").replace(/@([A-Z]+)@/g, (all, name) => parts[name] ?? all);

writeFileSync(page, html);
writeFileSync(licences, `Libraries in page.html, by "make html-assets" (page/package-lock.json):\n\n${used}`);
