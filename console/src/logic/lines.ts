/** Text that comes in pieces, as whole lines. */
export class LineSplitter {
  private rest = "";

  push(piece: string): string[] {
    const parts = (this.rest + piece).split("\n");
    this.rest = parts.pop() ?? "";
    return parts.filter((line) => line.trim() !== "");
  }
}
