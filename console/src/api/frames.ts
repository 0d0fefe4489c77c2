/** What arrives between two frames of the screen is handled once, right before the next one. */
export class FrameBatch<T> {
  private waiting: T[] = [];
  private scheduled = false;

  constructor(
    private readonly handle: (items: T[]) => void,
    private readonly schedule: (run: () => void) => void = onFrame,
  ) {}

  add(items: T[]): void {
    if (items.length === 0) return;
    for (const item of items) this.waiting.push(item);
    if (this.scheduled) return;
    this.scheduled = true;
    this.schedule(() => {
      this.scheduled = false;
      const ready = this.waiting;
      this.waiting = [];
      this.handle(ready);
    });
  }
}

/** A hidden page has no frames; there a timer does. */
function onFrame(run: () => void): void {
  if (document.hidden) setTimeout(run, 500);
  else requestAnimationFrame(run);
}
