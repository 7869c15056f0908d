// Rank pages by how many words of the query their titles contain; guide pages come first,
// and pages for developers last. Replaces the default scores of Sphinx's searchtools.js.
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.toLowerCase().split(/[^\p{L}\p{N}@]+/u).filter((word) => word.length > 1);
    const found = words.filter((word) => title.toLowerCase().includes(word)).length;
    const start = words.length && title.toLowerCase().startsWith(words[0]) ? 5 : 0;
    const folder = docname.split("/")[0];
    const first = ["guide", "cite", "gallery", "getting_started"].includes(folder);
    const last = ["architecture", "benchmarks", "changelog", "contributing", "theory"].includes(folder);
    const part = first ? 12 : last ? -12 : folder === "glossary" ? -30 : 0;
    return score + start + (words.length ? (30 * found) / words.length : 0) + part;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
