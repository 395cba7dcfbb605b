// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Colours for source code without an element for each token: ranges of its text, where the browser knows them.

gpuprof.highlight = (() => {
  if (!window.Highlight || !CSS.highlights) return () => {};

  const TOKENS = new RegExp([
    String.raw`(?<comment>/\*[^]*?(?:\*/|$(?![^]))|//[^\n]*)`,
    String.raw`(?<string>"(?:\\.|[^"\\\n])*"?)`,
    String.raw`(?<directive>^[ \t]*#[ \t]*\w+)`,
    String.raw`(?<number>\b(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)[uUlLfF]*\b)`,
    String.raw`(?<keyword>\b(?:const|constexpr|extern|static|volatile|inline|template|typename|struct|return|if|else`
      + "|for|while|do|break|continue|switch|case|default|sizeof|using|__global__|__device__|__shared__"
      + String.raw`|__launch_bounds__|__restrict__|__forceinline__|__syncthreads|__syncwarp|asm)\b)`,
    String.raw`(?<type>\b(?:void|bool|char|short|int|long|unsigned|float|double|real|size_t|float2|float4|double2`
      + String.raw`|u?int(?:8|16|32|64)_t)\b)`,
    String.raw`(?<builtin>\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize)\b)`,
  ].join("|"), "gm");
  // Beyond this, looking at the text takes longer than a reader waits.
  const MOST_LETTERS = 200000;

  const kinds = ["comment", "string", "directive", "number", "keyword", "type", "builtin"];
  const highlights = Object.fromEntries(kinds.map((kind) => {
    const highlight = new Highlight();
    CSS.highlights.set(`token-${kind}`, highlight);
    return [kind, highlight];
  }));

  /** Where the letters of an element lie: text nodes with the index of their first letter. */
  function places(code) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    const found = [];
    let start = 0;
    while (walker.nextNode()) {
      found.push({ node: walker.currentNode, start });
      start += walker.currentNode.data.length;
    }
    return found;
  }

  function colour(code) {
    const text = code.textContent;
    if (text.length > MOST_LETTERS) return;
    const nodes = places(code);
    let at = 0;
    const place = (index) => {
      while (at + 1 < nodes.length && nodes[at + 1].start <= index) at += 1;
      return [nodes[at].node, index - nodes[at].start];
    };
    for (const match of text.matchAll(TOKENS)) {
      const kind = kinds.find((name) => match.groups[name] !== undefined);
      const range = new StaticRange({
        startContainer: place(match.index)[0],
        startOffset: place(match.index)[1],
        endContainer: place(match.index + match[0].length)[0],
        endOffset: place(match.index + match[0].length)[1],
      });
      highlights[kind].add(range);
    }
  }

  return (part) => part.querySelectorAll(".source .code pre:not(.coloured)").forEach((code) => {
    code.classList.add("coloured");
    colour(code);
  });
})();
