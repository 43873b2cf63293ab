"""English function words: what ``protect="content"`` leaves in clear."""

from __future__ import annotations

_LIST = """
a an the this that these those such same other another each every either neither both all any
some no none few fewer many more most much less least several own

i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
it its itself we us our ours ourselves they them their theirs themselves one
who whom whose which what whatever whoever whichever
someone somebody something anyone anybody anything everyone everybody everything nobody nothing

am is are was were be been being do does did doing done have has had having
can could may might must shall should will would ought

about above across after against along among around as at before behind below beneath beside
besides between beyond by despite down during except for from in inside into like near of off
on onto out outside over past per since than through throughout till to toward towards under
until up upon via with within without

and but or nor so yet if unless although though because while whereas whether

how when where why here there then thus hence however therefore also too very just only even
still again once not never ever always already almost quite rather

i'm you're he's she's it's we're they're i've you've we've they've i'll you'll he'll she'll
it'll we'll they'll i'd you'd he'd she'd we'd they'd that's there's what's who's let's
isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't cannot couldn't
mustn't needn't shan't shouldn't won't wouldn't
"""

FUNCTION_WORDS = frozenset(_LIST.split())
