"""Communities and Crime (UCI): violent crimes per head in 1,994 communities of the United States."""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

COLUMNS = words("""
state county community communityname fold population householdsize racepctblack racePctWhite racePctAsian
racePctHisp agePct12t21 agePct12t29 agePct16t24 agePct65up numbUrban pctUrban medIncome pctWWage pctWFarmSelf
pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc whitePerCap blackPerCap indianPerCap
AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov PctLess9thGrade PctNotHSGrad PctBSorMore
PctUnemployed PctEmploy PctEmplManu PctEmplProfServ PctOccupManu PctOccupMgmtProf MalePctDivorce
MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam PctFam2Par PctKids2Par PctYoungKids2Par PctTeen2Par
PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg NumImmig PctImmigRecent PctImmigRec5 PctImmigRec8
PctImmigRec10 PctRecentImmig PctRecImmig5 PctRecImmig8 PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell
PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous PersPerRentOccHous PctPersOwnOccup
PctPersDenseHous PctHousLess3BR MedNumBR HousVacant PctHousOccup PctHousOwnOcc PctVacantBoarded
PctVacMore6Mos MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart OwnOccMedVal OwnOccHiQuart
RentLowQ RentMedian RentHighQ MedRent MedRentPctHousInc MedOwnCostPctInc MedOwnCostPctIncNoMtg NumInShelters
NumStreet PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT
LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop PolicReqPerOffic
PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor
OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens PctUsePubTrans PolicCars
PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn PolicBudgPerPop
ViolentCrimesPerPop
""")
IDENTITY = COLUMNS[:5]
TARGET = COLUMNS[-1]
MOST_MISSING = 0.2


def build(data: bytes, variant: Variant) -> Content:
    """Return Crime; `corrected` protects racepctblack, `published` householdsize, one column beside it."""
    frame = pd.read_csv(
        BytesIO(data), header=None, names=COLUMNS, usecols=COLUMNS[len(IDENTITY) :], na_values="?"
    ).astype("float64")
    sensitive = "racepctblack" if variant == "corrected" else "householdsize"
    sparse = frame.columns[frame.isna().mean() > MOST_MISSING]
    X = frame.drop(columns=[sensitive, TARGET, *sparse])
    missing = int(X.isna().to_numpy().sum())
    dropped = [
        f"{sensitive} is the sensitive attribute and no feature.",
        f"{', '.join(IDENTITY)}: they say which community it is.",
        f"{len(sparse)} columns with more than {MOST_MISSING:.0%} missing, from the survey of police departments: "
        f"{', '.join(sparse)}.",
    ]
    if variant == "published":
        X = X.fillna(X.median())
        dropped.append(f"{missing} missing value was replaced by the median over all rows, test rows included.")
    else:
        dropped.append(f"{missing} missing value stays NaN until a split fills it with the training rows' median.")
    return Content(
        X,
        [str(name) for name in X],
        {},
        frame[TARGET],
        frame[sensitive],
        "Communities and Crime, UCI Machine Learning Repository, dataset 183; all values already normalised to 0-1 "
        "there in steps of 0.01.",
        dropped,
    )
