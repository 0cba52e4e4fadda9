// Tokens of the trainer against a named peer of npm.
//   node peers.mjs NODE_MODULES tiktoken ENCODING TEXTS IDS      Rust tiktoken (WebAssembly)
//   node peers.mjs NODE_MODULES native TOKENIZER.json TEXTS IDS  Rust tokenizers of Hugging Face (native)
// Prints what it compared and the first differences; exits 1 when there are any. Called by tokens.sh.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// Its Unicode form is that of Unicode 9: these are the marks of a combining class that came later, up to the version that
// texts.py draws from, and it leaves them where they stand. A text with one says nothing about a tokenizer that composes.
const LATER_MARKS = new RegExp("[" +
    "\\u{7fd}\\u{898}-\\u{89f}\\u{8ca}-\\u{8d3}\\u{9fe}\\u{c3c}\\u{d3b}-\\u{d3c}\\u{eba}\\u{1715}\\u{1abf}-\\u{1ace}\\u{1df6}-\\u{1dfa}" +
    "\\u{a82c}\\u{10d24}-\\u{10d27}\\u{10eab}-\\u{10eac}\\u{10f46}-\\u{10f50}\\u{10f82}-\\u{10f85}\\u{11070}\\u{1133b}\\u{1145e}" +
    "\\u{11839}-\\u{1183a}\\u{1193d}-\\u{1193e}\\u{11943}\\u{119e0}\\u{11a34}\\u{11a47}\\u{11a99}\\u{11d42}\\u{11d44}-\\u{11d45}" +
    "\\u{11d97}\\u{16ff0}-\\u{16ff1}\\u{1e130}-\\u{1e136}\\u{1e2ae}\\u{1e2ec}-\\u{1e2ef}]", "u");

const [folder, peer, what, textsPath, idsPath] = process.argv.slice(2);
const require = createRequire(`${folder}/x.js`);

async function encoder() {
    if (peer === "tiktoken") {
        const tokenizer = require("tiktoken").get_encoding(what);
        return (text) => tokenizer.encode(text, [], []);
    }
    const tokenizer = require("@anush008/tokenizers").Tokenizer.fromFile(what);
    return async (text) => (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
}

const encode = await encoder();
const composes = peer === "native" && /"NFC"/.test(JSON.stringify(JSON.parse(readFileSync(what, "utf8")).normalizer));
const texts = readFileSync(textsPath);
const ids = readFileSync(idsPath);
let textAt = 0, idAt = 0, compared = 0, later = 0, tokens = 0, different = 0, bytes = 0, spent = 0;
while (textAt < texts.length) {
    const size = texts.readUInt32LE(textAt);
    const text = texts.toString("utf8", textAt + 4, textAt + 4 + size);
    textAt += 4 + size;
    const count = ids.readUInt32LE(idAt);
    const ours = [];
    for (let i = 0; i < count; i++) ours.push(ids.readInt32LE(idAt + 4 + 4 * i));
    idAt += 4 + 4 * count;
    if (composes && LATER_MARKS.test(text)) {
        later++;
        continue;
    }
    const before = process.cpuUsage();
    const theirs = Array.from(await encode(text));
    const after = process.cpuUsage(before);
    spent += after.user + after.system; // microseconds of all threads
    compared++;
    tokens += count;
    bytes += size;
    if (ours.length !== theirs.length || ours.some((id, i) => id !== theirs[i])) {
        if (different++ < 5) console.log(`differs: ${JSON.stringify(text)}\n  trainer ${ours}\n  ${peer} ${theirs}`);
    }
}
if (idAt !== ids.length) throw new Error("more ids than texts");
console.log(`${peer} ${what.split("/").slice(-3).join("/")}: ${compared} texts, ${tokens} tokens, ${different} texts differ; ` +
            (later > 0 ? `${later} with marks that it does not know not compared; ` : "") +
            `${(bytes / Math.max(spent, 1)).toFixed(1)} MB/s`);
process.exit(different === 0 && compared > 0 ? 0 : 1);
