"""German function words, case-folded as words are compared: ß is ss.

Forms that are nouns as well when written with a capital (Würde, Habe, All, Weg) are not among
them: words of this list may stay in clear.
"""

from __future__ import annotations

_FUNCTION_WORDS = """
der die das des dem den ein eine einer eines einem einen kein keine keiner keines keinem keinen
dieser diese dieses diesem diesen jener jene jenes jenem jenen jeder jede jedes jedem jeden
mancher manche manches manchem manchen solcher solche solches solchem solchen welcher welche
welches welchem welchen derselbe dieselbe dasselbe desselben demselben denselben dieselben
alle allem allen aller alles beide beiden beider einige einigen einiger mehrere mehreren viele
vielen vieler wenige wenigen weniger etwas nichts mehr

ich mich mir du dich dir er ihn ihm sie ihr ihnen es wir uns euch man sich selbst selber
mein meine meiner meines meinem meinen dein deine deiner deines deinem deinen
seine seiner seines seinem seinen ihre ihrer ihres ihrem ihren
unser unsere unserer unseres unserem unseren euer eure eurer eures eurem euren
wer wen wem wessen was jemand jemanden jemandem niemand niemanden niemandem

bin bist ist sind seid war warst waren wart gewesen sei seien wäre wären
hast hat hatte hattest hatten hattet hätte hätten gehabt
werde wirst wird werdet wurde wurdest wurden geworden worden
kann kannst können könnt konnte konnten könnte könnten darf darfst dürfen dürft durfte durften
dürfte dürften muss musst müssen müsst musste mussten müsste müssten soll sollst sollt sollte
sollten will willst wollt wollte wollten mag magst mögt mochte mochten möchte möchten

an am auf aus bei beim bis durch für gegen hinter in im ins mit nach neben ohne seit über um
unter unterm vom von vor vorm während wegen zu zum zur zwischen ab ans aufs außer gegenüber
innerhalb außerhalb trotz per pro

und oder aber sondern denn doch wenn weil dass ob obwohl als wie damit sodass bevor nachdem
sobald solange sowie sowohl weder noch entweder indem

wo wohin woher wann warum wieso weshalb womit wofür woran worauf worin wovon wozu
da dort hier dann daher darum deshalb deswegen dabei dadurch dafür dagegen daran darauf daraus
darin darüber davon dazu nicht nie niemals auch nur schon sehr so sogar immer wieder jetzt nun
eben etwa fast ganz gar ja nein kaum zwar also jedoch hin her bereits
"""

FUNCTION_WORDS = frozenset(word.casefold() for word in _FUNCTION_WORDS.split())
"""What ``protect="content:de"`` leaves in clear."""
